// @ts-check
import { tmpdir } from 'node:os'
import { join } from 'node:path'

export default {
  mutate: ['src/**/*.ts', 'stores/memory/**/*.ts', 'stores/shared/**/*.ts', '!**/*.d.ts'],
  testRunner: 'vitest',
  vitest: { configFile: 'test/proof/mutants/vitest.config.ts' },
  plugins: ['@stryker-mutator/vitest-runner'],
  coverageAnalysis: 'perTest',
  // Outside of the project, so that nothing that lists its files meets the copy.
  tempDirName: join(tmpdir(), 'coatcheck-mutants'),
  cleanTempDir: 'always',
  // vitest checks no types.
  disableTypeChecks: false,
  ignorePatterns: ['dist', 'docs', 'site', '.github', 'bench', 'test/package', 'test/support/.worker-*'],
  reporters: ['clear-text'],
  clearTextReporter: { allowColor: false, logTests: false, reportTests: false },
  thresholds: { high: 92, low: 92, break: 85 },
  dryRunTimeoutMinutes: 30,
}
