// On Bun: the program in its package of this platform is what npm installs without running scripts.
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { folderOf } from './recipe.ts'
import { walk } from './walk.ts'

walk('the recipe for Elysia', 'elysia', {
  isTyped: true,
  command(preload) {
    const folder = join(folderOf('elysia'), 'node_modules/@oven')
    return [join(folder, readdirSync(folder)[0]!, 'bin/bun'), '--preload', preload, 'app.ts']
  },
})
