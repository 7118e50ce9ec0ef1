// @ts-check
// llms.txt lists the pages for language models (https://llmstxt.org), and llms-full.txt has all of them: from the same
// pages and in the same order as the site. llms.txt is in the repository, in the package and on the site, and its links
// lead from each to the same files. `node docs/.vitepress/llms.mjs` writes it.
import { existsSync, readFileSync, realpathSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { SECTIONS } from './pages.mjs'

const root = new URL('../../', import.meta.url)
const read = (/** @type {string} */ path) => readFileSync(new URL(path, root), 'utf8')

/** The file of a link of the sidebar. @param {string} link */
function fileOf(link) {
  if (link === '/') return 'docs/index.md'
  if (link.startsWith('/repository/')) return `${link.slice('/repository/'.length)}.md`
  return `docs${link}.md`
}

/** The text of a page, without what only tests and browsers read. @param {string} path */
const textOf = path =>
  read(path)
    .replaceAll(/ *<!--[\s\S]*?-->\n?/g, '')
    .replaceAll(/^!\[[^\]]*\]\([^)]*\)\n+/gm, '')
    .trim()

const pages = SECTIONS.map(({ text, items }) => ({
  text,
  items: items.map(({ text: title, link, description }) => ({ title, link, description, path: fileOf(link) })),
}))
for (const { items } of pages)
  for (const { path } of items) if (!existsSync(new URL(path, root))) throw new Error(`no page ${path}`)

const intro = () => `# coatcheck\n\n> ${JSON.parse(read('package.json')).description}`

/** @param {string} more a paragraph below the head */
export const llmsIndex = (more = '') =>
  `${intro()}\n\n${more}${pages
    .map(({ text, items }) => {
      const lines = items.map(({ title, path, description }) => `- [${title}](${path}): ${description}`)
      return `## ${text}\n\n${lines.join('\n')}`
    })
    .join('\n\n')}\n`

/** Without the changes: who writes code needs them least. */
export const llmsFull = () =>
  `${intro()}\n\n${pages
    .flatMap(({ items }) => items.filter(({ link }) => !link.startsWith('/repository/')))
    .map(({ path }) => `<!-- ${path} -->\n\n${textOf(path)}`)
    .join('\n\n')}\n`

if (process.argv[1] && realpathSync(process.argv[1]) === fileURLToPath(import.meta.url))
  writeFileSync(new URL('llms.txt', root), llmsIndex())
