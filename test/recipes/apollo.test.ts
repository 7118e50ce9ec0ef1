import { walkGraphql } from './graphql.ts'

walkGraphql('Apollo Server', 'apollo', 3)
