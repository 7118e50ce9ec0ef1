// On both: the recipe with Request and Response, and the recipe for Express on their node:http.
import { fileURLToPath } from 'node:url'
import { programOf } from './recipe.ts'
import { walk } from './walk.ts'

const bun = () => programOf('bun-deno', '@oven', 'bin/bun')
const deno = () => programOf('bun-deno', '@deno', 'deno')
const entry = fileURLToPath(new URL('deno.mjs', import.meta.url))

walk('the recipe for Bun', 'bun-deno', {
  isTyped: true,
  command: preload => [bun(), '--preload', preload, 'app.ts'],
})
walk('the recipe for Deno', 'bun-deno', {
  command: (_, port) => [deno(), 'serve', '--allow-all', '--port', `${port}`, entry],
})
walk('the recipe for Express, on Bun', 'express', {
  command: preload => [bun(), '--preload', preload, 'app.mjs'],
})
walk('the recipe for Express, on Deno', 'express', {
  command: preload => [deno(), 'run', '--allow-all', '--preload', preload, 'app.mjs'],
})
