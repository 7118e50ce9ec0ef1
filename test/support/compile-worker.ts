import { mkdtempSync, rmSync } from 'node:fs'
import { basename, isAbsolute, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { rollup } from 'rollup'
import { stripTypes } from '../scripts/strip-types.mjs'

const root = fileURLToPath(new URL('../../', import.meta.url))

export interface CompiledWorker {
  readonly path: string
  remove(): void
}

/** Makes JavaScript of test/support/NAME.ts and the sources that it imports, so that Node 20 can run it as a process. */
export async function compileWorker(name: string): Promise<CompiledWorker> {
  const bundle = await rollup({
    input: join(root, 'test/support', `${name}.ts`),
    plugins: [
      {
        name: 'sources-of-coatcheck',
        resolveId: id => {
          if (id === 'coatcheck') return join(root, 'src/index.ts')
          return id.startsWith('coatcheck/stores/') ? join(root, `${id.slice('coatcheck/'.length)}.ts`) : null
        },
      },
      stripTypes(),
    ],
    external: id => !id.startsWith('.') && !isAbsolute(id) && !id.startsWith('coatcheck'),
  })
  // Where its URL is used, the file is as deep in the tree as its source.
  const folder = mkdtempSync(join(root, 'test', '.worker-'))
  await bundle.write({ dir: folder, format: 'es' })
  await bundle.close()
  return {
    path: join(folder, `${basename(name)}.js`),
    remove: () => rmSync(folder, { recursive: true, force: true }),
  }
}
