import { fileURLToPath } from 'node:url'
import { defineConfig } from 'vitest/config'

const here = (path: string) => fileURLToPath(new URL(path, import.meta.url))

export default defineConfig({
  resolve: {
    // Tests import the package by its name and run against the sources.
    alias: [
      { find: /^coatcheck\/custom-store\/testing$/, replacement: here('./testing/index.ts') },
      { find: /^coatcheck\/(stores\/\w+)$/, replacement: here('./$1.ts') },
      { find: /^coatcheck\/([\w-]+)$/, replacement: here('./src/$1.ts') },
      { find: /^coatcheck$/, replacement: here('./src/index.ts') },
    ],
  },
  test: {
    include: ['test/**/*.test.ts'],
    setupFiles: ['strict-expect', 'stuck-files'].map(name => here(`./test/support/${name}.ts`)),
    // The recipes are installed first, by `npm run test:recipes`.
    exclude: ['bench/**', '**/node_modules/**', ...(process.env.COATCHECK_RECIPES ? [] : ['test/stories/recipes/**'])],
    // What takes 8 s alone took 30 on a machine with a load of 14. A test that hangs costs a minute, and says so.
    testTimeout: 60_000,
    hookTimeout: 120_000,
    // Servers of several engines run beside the tests: more workers make them slow, not the suite fast.
    maxWorkers: 2,
    reporters: ['default', here('./test/support/scripts/engines-reporter.ts')],
  },
})
