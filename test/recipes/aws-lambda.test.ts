import { walk } from './walk.ts'

walk('the recipe for AWS Lambda', 'aws-lambda', { isBehindGateway: true })
