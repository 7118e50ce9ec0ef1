import { walkPages } from './pages.ts'
import { walk } from './walk.ts'

// Astro's own check stays on.
walk('the recipe for Astro', 'astro', { refusesToo: true }, walkPages)
