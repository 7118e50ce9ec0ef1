import { walk } from './walk.ts'

walk('the recipe for hapi', 'hapi')
