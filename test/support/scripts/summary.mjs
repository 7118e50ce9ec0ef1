// @ts-check
// Closes a CI run: `node test/support/scripts/summary.mjs FOLDER` reads FOLDER/steps.tsv (verdict, step), FOLDER/*.json (vitest
// reports) and FOLDER/unhandled.txt (what was thrown outside of any test: it fails a step without failing a test), names
// what failed and what was skipped, and ends with one line of counts.
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { counts } from './results.mjs'

const folder = process.argv[2] ?? '.'
const sum = { passed: 0, failed: 0, skipped: 0 }
/** @param {string} name */
const lines = name => {
  const path = join(folder, name)
  return existsSync(path)
    ? readFileSync(path, 'utf8')
        .split('\n')
        .filter(text => text !== '')
    : []
}
for (const line of lines('steps.tsv')) {
  const [verdict, step] = line.split('\t')
  if (verdict === 'passed') sum.passed++
  else if (verdict === 'skipped') sum.skipped++
  else sum.failed++
  console.log(`step ${verdict}: ${step}`)
}
for (const error of lines('unhandled.txt')) console.log(`  outside of any test: ${error}`)
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
