// @ts-check
// llms.txt lists the pages for language models (https://llmstxt.org), and llms-full.txt has all of them: from the same
// pages and in the same order as the site.
import { existsSync, readFileSync } from 'node:fs'
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

/** What a page says of itself: the first sentence below its heading. @param {string} path */
function summary(path) {
  const text = textOf(path)
  const [, first = ''] = /^# .*\n+((?:[^\n#`|-][^\n]*))/.exec(text) ?? []
  const plain = first.replaceAll(/\[([^\]]*)\]\([^)]*\)/g, '$1').replaceAll(/[*`]/g, '')
  return /^.*?\.(?= |$)/.exec(plain)?.[0].slice(0, -1) ?? plain.replace(/:$/, '')
}

const pages = SECTIONS.map(({ text, items }) => ({
  text,
  items: items.map(({ text: title, link }) => ({ title, link, path: fileOf(link) })),
}))
for (const { items } of pages)
  for (const { path } of items) if (!existsSync(new URL(path, root))) throw new Error(`no page ${path}`)

const intro = () => {
  const { version, description } = JSON.parse(read('package.json'))
  return `# coatcheck ${version}\n\n> ${description}`
}

export const llmsIndex = () =>
  `${intro()}\n\nAll pages as one text: [llms-full.txt](/llms-full.txt).\n\n${pages
    .map(({ text, items }) => {
      const lines = items.map(({ title, link, path }) => {
        const said = summary(path)
        return `- [${title}](${link === '/' ? '/index' : link}.html)${said ? `: ${said}` : ''}`
      })
      return `## ${text}\n\n${lines.join('\n')}`
    })
    .join('\n\n')}\n`

/** Without the changes: who writes code needs them least. */
export const llmsFull = () =>
  `${intro()}\n\n${pages
    .flatMap(({ items }) => items.filter(({ link }) => !link.startsWith('/repository/')))
    .map(({ path }) => `<!-- ${path} -->\n\n${textOf(path)}`)
    .join('\n\n')}\n`
