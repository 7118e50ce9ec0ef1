import { fileURLToPath } from 'node:url'
import { defineConfig } from 'vitest/config'

const here = (path: string) => fileURLToPath(new URL(path, import.meta.url))

// What asks servers: run in processes that keep what they have loaded, and the servers that files share. Elsewhere a file
// that asks them is called `engines.test.ts`, or ends in `.engines.test.ts`.
const ENGINES = ['test/{redis,sql}/**/*.test.ts', 'test/**/{,*.}engines.test.ts']
const LIBRARIES = 'test/libraries/**/*.test.ts'
const FIRST = 'test/{guarantees,contract}/**/*.test.ts'
const PACKAGE = 'test/package/**/*.test.ts'
const RECIPES = 'test/recipes/**/*.test.ts'
const PROOF = 'test/proof/**/*.test.ts'
// What looks at its whole process: warnings, timers, the heap.
const PROCESS = 'test/**/*.process.test.ts'
// What vitest has for this, `--exclude`, reaches no project.
const exclude = ['**/node_modules/**', ...JSON.parse(process.env.COATCHECK_EXCLUDE ?? '[]')]

// Projects run in the order of their names, the longest files of each first.
const project = (
  name: string,
  include: string[],
  { not = [], ...test }: { not?: string[]; pool?: 'threads'; isolate?: false } = {},
) => ({ extends: true as const, test: { name, include, exclude: [...exclude, ...not], ...test } })

export default defineConfig({
  resolve: {
    // Tests import the package by its name and run against the sources.
    alias: [
      { find: /^coatcheck\/custom-store\/testing$/, replacement: here('./src/custom-store/testing.ts') },
      { find: /^coatcheck\/(stores\/\w+)$/, replacement: here('./$1.ts') },
      { find: /^coatcheck\/([\w-]+)$/, replacement: here('./src/$1.ts') },
      { find: /^coatcheck$/, replacement: here('./src/index.ts') },
      // Of an example that the tests of other libraries run.
      { find: /^jose$/, replacement: here('./test/libraries/node_modules/jose/dist/webapi/index.js') },
    ],
  },
  test: {
    setupFiles: [
      ...(process.env.COATCHECK_STALLS === '1' ? ['stalls'] : []),
      ...['real-again', 'strict-expect', 'stuck-files', 'warnings'],
    ].map(name => here(`./test/support/${name}.ts`)),
    // What takes 8 s alone took 30 on a machine with a load of 14. A test that hangs costs a minute, and says so.
    testTimeout: 60_000,
    hookTimeout: 120_000,
    // With all engines four: most files wait for a server for half of their time. (Files that share a process follow this
    // setting alone, not `--maxWorkers`.)
    maxWorkers: process.env.COATCHECK_ALL_ENGINES === '1' ? 4 : 3,
    reporters: ['default', here('./test/support/scripts/engines-reporter.ts')],
    // What a run has compiled, the next one finds: `.ci/run` has six.
    experimental: { fsModuleCache: true },
    projects: [
      project('engines', ENGINES, { isolate: false, not: [FIRST, PROOF, PROCESS] }),
      project('guarantees', [FIRST], { isolate: false }),
      project('libraries', [LIBRARIES], { isolate: false }),
      project('package', [PACKAGE]),
      project('process', [PROCESS], { not: [PACKAGE, PROOF] }),
      project('rules', ['test/**/*.test.ts'], {
        pool: 'threads',
        isolate: false,
        not: [...ENGINES, FIRST, LIBRARIES, PACKAGE, PROCESS, PROOF, RECIPES],
      }),
      // The recipes are installed first, by `npm run test:recipes`; the searches are asked by `npm run proof`.
      project('recipes', [RECIPES], { pool: 'threads', isolate: false }),
      project('proof', [PROOF]),
    ],
  },
})
