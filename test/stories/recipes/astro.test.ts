import { walkPages } from './pages.ts'
import { walk } from './walk.ts'

walk('the recipe for Astro', 'astro')
walkPages('the recipe for Astro', 'astro')
