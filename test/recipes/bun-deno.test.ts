// On both: the recipe with Request and Response, and the recipe for Express on their node:http.
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { folderOf } from './recipe.ts'
import { walk } from './walk.ts'

/** The programs in the packages of this platform: what npm installs without running scripts. */
function binary(scope: string, path: string): string {
  const folder = join(folderOf('bun-deno'), 'node_modules', scope)
  return join(folder, readdirSync(folder)[0]!, path)
}
const bun = () => binary('@oven', 'bin/bun')
const deno = () => binary('@deno', 'deno')
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
