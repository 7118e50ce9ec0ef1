// @ts-check
// What commands write into pages: the lines below a comment such as `<!-- bench: chart -->`, up to an empty one.
import { readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

/** @param {string} path */
export const at = path => fileURLToPath(new URL(`../${path}`, import.meta.url))

/**
 * @param {string} command that the comments name
 * @param {readonly string[]} pages
 * @param {Readonly<Record<string, string>>} blocks
 */
export function writeBlocks(command, pages, blocks) {
  const mark = new RegExp(`(<!-- ${command}: (\\w+) -->\\n)(?:.+\\n)*`, 'g')
  for (const page of pages)
    writeFileSync(
      at(page),
      readFileSync(at(page), 'utf8').replace(mark, (_, comment, name) => {
        if (blocks[name] === undefined) throw new Error(`${page}: nothing is called ${name}`)
        return `${comment}${blocks[name]}\n`
      }),
    )
}
