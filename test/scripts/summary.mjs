// @ts-check
// Closes a CI run: `node test/scripts/summary.mjs FOLDER` reads FOLDER/steps.tsv (verdict, step) and FOLDER/*.json
// (vitest reports), names what failed and what was skipped, and ends with one line of counts.
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { counts } from './results.mjs'

const folder = process.argv[2] ?? '.'
const sum = { passed: 0, failed: 0, skipped: 0 }
const steps = existsSync(join(folder, 'steps.tsv')) ? readFileSync(join(folder, 'steps.tsv'), 'utf8') : ''
for (const line of steps.split('\n').filter(text => text !== '')) {
  const [verdict, step] = line.split('\t')
  if (verdict === 'passed') sum.passed++
  else if (verdict === 'skipped') sum.skipped++
  else sum.failed++
  console.log(`step ${verdict}: ${step}`)
}
for (const file of readdirSync(folder).filter(name => name.endsWith('.json'))) {
  const report = counts(join(folder, file))
  sum.passed += report.passed
  sum.failed += report.failed
  sum.skipped += report.skipped
  console.log(`${file}: ${report.passed} passed, ${report.failed} failed, ${report.skipped} skipped`)
  for (const failure of report.failures) console.log(`  failed: ${failure}`)
  for (const [group, count] of report.skips) console.log(`  skipped: ${group} (${count})`)
}
console.log(`${sum.passed} passed, ${sum.failed} failed, ${sum.skipped} skipped`)
process.exitCode = sum.failed === 0 && sum.passed > 0 ? 0 : 1
