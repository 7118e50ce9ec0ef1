import { mkdtempSync, rmSync } from 'node:fs'
import { basename, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build } from 'tsup'

const root = fileURLToPath(new URL('../../', import.meta.url))

/** Makes JavaScript of test/NAME.ts and the sources that it imports, so that Node 20 can run it as a process: its path. */
export async function compileWorker(name: string) {
  // Where its URL is used, the file is as deep in the tree as its source.
  const folder = mkdtempSync(join(root, 'test/support', '.worker-'))
  await build({
    entry: [join(root, 'test', `${name}.ts`)],
    outDir: folder,
    config: false,
    format: 'esm',
    target: 'node20',
    silent: true,
    clean: false,
    // Drivers: none of them is bundled.
    external: [/^(pg|mysql2|@?libsql|better-sqlite3|redis|ioredis|vitest)([-/]|$)/],
    esbuildOptions: options => {
      options.alias = {
        ...Object.fromEntries(
          ['memory', 'redis', 'postgres', 'mysql', 'sqlite'].map(store => [
            `coatcheck/stores/${store}`,
            join(root, `stores/${store}.ts`),
          ]),
        ),
        'coatcheck/custom-store': join(root, 'src/custom-store.ts'),
        coatcheck: join(root, 'src/index.ts'),
      }
    },
  })
  return {
    path: join(folder, `${basename(name)}.js`),
    stop: () => rmSync(folder, { recursive: true, force: true }),
  }
}
