// The tests that are asked about a mistake: each mistake runs all tests that reach its line, so those that start programs,
// look at the whole process or search for long are left out.
import { defineConfig } from 'vitest/config'
import whole from '../../../vitest.config.ts'

const { resolve, test: { setupFiles, testTimeout, hookTimeout } = {} } = whole as Required<typeof whole>

export default defineConfig({
  resolve: resolve!,
  test: {
    setupFiles: setupFiles!,
    testTimeout: testTimeout!,
    hookTimeout: hookTimeout!,
    include: [
      'test/{api,memory,stories,unit}/**/*.test.ts',
      'test/libraries/import/sealed.test.ts',
      'test/contract/memory.test.ts',
      'test/guarantees/memory.test.ts',
    ],
    exclude: [
      'test/stories/{examples,recipes}/**',
      'test/**/{*.process,frameworks,process,remember-model,schedules}.test.ts',
    ],
    isolate: false,
    reporters: [{}],
  },
})
