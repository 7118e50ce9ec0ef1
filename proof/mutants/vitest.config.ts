// The tests that are asked about a mistake: each mistake runs all tests that reach its line, so those that start servers
// or compilers, look at the whole process or search for long are left out.
import { mergeConfig } from 'vitest/config'
import whole from '../../vitest.config.ts'

const config = mergeConfig(whole, {
  test: {
    isolate: false,
    exclude: [
      'test/{browser,command,docs,examples,package,proof,recipes,scripts,services,types}/**',
      'test/stores/{redis,sql}/**',
      'test/**/{engines,frameworks,garbage,live-services,lost-cookies,module-level,nginx,parallel,process,schedules,servers,types}.test.ts',
      'test/package/house.test.ts',
      'test/api/manager/remember-model.test.ts',
      'test/stores/memory/{after-a-peak,growth,walk-at-growth}.test.ts',
    ],
  },
})
config.test!.reporters = [{}]
export default config
