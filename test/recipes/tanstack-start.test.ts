import { walkPages } from './pages.ts'
import { walk } from './walk.ts'

walk('the recipe for TanStack Start', 'tanstack-start', {}, walkPages)
