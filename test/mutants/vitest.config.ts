// The tests of one room, in one thread: a mistake is tried in about a second.
import { readdirSync, statSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { mergeConfig } from 'vitest/config'
import { BaseSequencer, type TestSpecification } from 'vitest/node'
import whole from '../../vitest.config.ts'
import { LEFT_OUT } from './rooms.mjs'

const root = fileURLToPath(new URL('../..', import.meta.url))

/** The quickest file first: most mistakes are noticed by it, and then the others need not run. */
class QuickestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const cost = ({ moduleId }: TestSpecification) =>
      this.ctx.cache.getFileTestResults(`:${moduleId.slice(root.length)}`)?.duration ?? statSync(moduleId).size
    return [...files].sort((one, other) => cost(one) - cost(other))
  }
}

/** The test files of the folders that mutants.mjs names, but for those left out, and the files that it names. */
const include = (process.env.COATCHECK_MUTANTS_TESTS ?? '').split(' ').flatMap(path =>
  path.endsWith('.ts')
    ? [path]
    : readdirSync(`${root}${path}`, { recursive: true, encoding: 'utf8' })
        .filter(file => file.endsWith('.test.ts'))
        .map(file => `${path}/${file}`)
        .filter(file => !LEFT_OUT.includes(file)),
)

const config = mergeConfig(whole, {
  cacheDir: `${root}.vite`,
  test: {
    isolate: false,
    sequence: { sequencer: QuickestFirst },
    setupFiles: ['coverage-of-one-file.ts', 'no-shrinking.ts'].map(file =>
      fileURLToPath(new URL(file, import.meta.url)),
    ),
  },
})
config.test!.include = include
config.test!.reporters = [{}]
export default config
