// @ts-check
// Run by `npm publish` before anything is sent: what only the owner of the repository knows has to be filled in. Without
// `repository` the relative links of the README lead nowhere on npm.
import { readFileSync, realpathSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

/**
 * What is missing in a folder with a package.json and a .github/SECURITY.md.
 * @param {string} folder
 * @returns {string[]}
 */
export function missing(folder) {
  const manifest = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'))
  const fields = ['repository', 'homepage', 'bugs', 'author'].filter(name => !manifest[name])
  const isReachable = !/to be filled in/i.test(readFileSync(join(folder, '.github/SECURITY.md'), 'utf8'))
  return [
    ...fields.map(name => `${name} of package.json`),
    ...(isReachable ? [] : ['the contact in .github/SECURITY.md']),
  ]
}

if (process.argv[1] && realpathSync(process.argv[1]) === fileURLToPath(import.meta.url)) {
  const all = missing(fileURLToPath(new URL('../../../', import.meta.url)))
  if (all.length > 0) {
    console.error(`This is not published yet. Fill in first: ${all.join(', ')}.`)
    process.exitCode = 1
  }
}
