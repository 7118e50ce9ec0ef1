import { programOf } from './recipe.ts'
import { walk } from './walk.ts'

walk('the recipe for Elysia', 'elysia', {
  isTyped: true,
  command: preload => [programOf('elysia', '@oven', 'bin/bun'), '--preload', preload, 'app.ts'],
})
