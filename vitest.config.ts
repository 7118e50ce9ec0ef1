import { fileURLToPath } from 'node:url'
import { defineConfig } from 'vitest/config'

const here = (path: string) => fileURLToPath(new URL(path, import.meta.url))

// Projects run in the order of their names, the longest files of each first.
// What starts no server, or one example of its own: run in threads that keep what they have loaded.
const IN_PROCESS = 'test/{api,stories,unit}/**/!(*.process).test.ts'
// What asks servers: run in processes that keep what they have loaded, and the servers that files share.
const PROOF = 'test/proof/**/*.test.ts'
const ENGINES = 'test/{guarantees,contract,engines,libraries}/**/!(*.process).test.ts'
const { COATCHECK_RECIPES, COATCHECK_EXCLUDE } = process.env
const exclude = [
  '**/node_modules/**',
  // The recipes are installed first, by `npm run test:recipes`.
  ...(COATCHECK_RECIPES ? [] : ['test/stories/recipes/**']),
  // What vitest has for this, `--exclude`, reaches no project.
  ...(COATCHECK_EXCLUDE?.split(',') ?? []),
]

export default defineConfig({
  resolve: {
    // Tests import the package by its name and run against the sources.
    alias: [
      { find: /^coatcheck\/custom-store\/testing$/, replacement: here('./src/custom-store/testing.ts') },
      { find: /^coatcheck\/(stores\/\w+)$/, replacement: here('./$1.ts') },
      { find: /^coatcheck\/([\w-]+)$/, replacement: here('./src/$1.ts') },
      { find: /^coatcheck$/, replacement: here('./src/index.ts') },
    ],
  },
  test: {
    setupFiles: ['strict-expect', 'stuck-files', 'warnings'].map(name => here(`./test/support/${name}.ts`)),
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
      { extends: true, test: { name: 'engines', include: [ENGINES], exclude, isolate: false } },
      { extends: true, test: { name: 'in-process', include: [IN_PROCESS], exclude, pool: 'threads', isolate: false } },
      // A process for each file: what compiles, measures the heap, or looks at warnings and timers of the whole process.
      {
        extends: true,
        test: { name: 'alone', include: ['test/**/*.test.ts'], exclude: [...exclude, IN_PROCESS, ENGINES, PROOF] },
      },
      // By `npm run proof` alone.
      { extends: true, test: { name: 'proof', include: [PROOF] } },
    ],
  },
})
