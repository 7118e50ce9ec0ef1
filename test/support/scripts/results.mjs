// @ts-check
import { readFileSync } from 'node:fs'

/**
 * @typedef {{ status: string, fullName: string, ancestorTitles: string[] }} Assertion
 * @typedef {{ name: string, status: string, message: string, startTime: number, endTime: number, assertionResults: Assertion[] }} File
 */

/**
 * What a JSON report of vitest counts. A file that could not even be loaded is one failure, a missing report another.
 * @param {string} path
 * @returns {{ passed: number, failed: number, skipped: number, skips: Map<string, number>, failures: string[] }}
 */
export function counts(path) {
  /** @type {Map<string, number>} */
  const skips = new Map()
  const sum = { passed: 0, failed: 0, skipped: 0, skips, failures: /** @type {string[]} */ ([]) }
  /** @type {File[]} */
  let files
  try {
    files = JSON.parse(readFileSync(path, 'utf8')).testResults
  } catch {
    return { ...sum, failed: 1, failures: [`no report at ${path}`] }
  }
  for (const { name, status, assertionResults } of files) {
    let failedHere = 0
    for (const test of assertionResults)
      if (test.status === 'passed') sum.passed++
      else if (test.status === 'failed') {
        failedHere++
        sum.failures.push(`${name}: ${test.fullName}`)
      } else {
        sum.skipped++
        const group = `${name.slice(name.lastIndexOf('/test/') + 1)}: ${test.ancestorTitles[0] ?? test.fullName}`
        skips.set(group, (skips.get(group) ?? 0) + 1)
      }
    if (status === 'failed' && failedHere === 0) {
      failedHere = 1
      sum.failures.push(`${name} could not be run`)
    }
    sum.failed += failedHere
  }
  return sum
}
