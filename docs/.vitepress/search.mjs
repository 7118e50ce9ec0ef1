// @ts-check
// The search of the site: what is in its index, and in which order it answers.
import { readdirSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'

// The one that VitePress has, and puts into the site.
const { resolve } = createRequire(import.meta.url)
export const { default: MiniSearch } = await import(
  createRequire(resolve('vitepress/package.json')).resolve('minisearch')
)

/**
 * Pages and the API reference: no figures and no files of the repository.
 * @param {string} text
 * @param {{ relativePath: string, frontmatter?: Record<string, unknown> }} env
 * @param {{ render: (text: string, env: object) => string }} md
 */
export function renderForSearch(text, env, md) {
  if (env.relativePath.startsWith('repository/')) return ''
  return md.render(text, env)
}

/** Guides come before members of the API. The browser gets this function as text: it stands alone. */
export const searchOptions = {
  combineWith: 'AND',
  boost: { title: 4, titles: 2, text: 1 },
  boostDocument: (/** @type {string} */ id) => (id.startsWith('/api/') ? 0.05 : id.startsWith('/guide') ? 4 : 1),
}

/** What people look for, and the pages that should come first. @type {Record<string, RegExp>} */
export const QUESTIONS = {
  login: /^\/(?:start|guide)/,
  logout: /^\/(?:start|guide|moving)/,
  middleware: /^\/(?:guide|servers|moving|connect)/,
  jwt: /^\/compare/,
  'express 4': /^\/(?:servers\/express|start|moving|connect)/,
  maxAge: /^\/(?:options|moving|guide|connect)/,
}

/** The index that the site was built with. @param {string} site */
export function builtIndex(site) {
  const chunks = join(site, 'assets/chunks')
  const [name = ''] = readdirSync(chunks).filter(file => file.startsWith('@localSearchIndexroot'))
  const text = readFileSync(join(chunks, name), 'utf8')
  const literal = text.slice(text.indexOf('=') + 1, text.lastIndexOf(';export'))
  // The chunk is one string literal, which this project has just written.
  const json = /** @type {string} */ (new Function(`return ${literal}`)())
  return MiniSearch.loadJSON(json, { fields: ['title', 'titles', 'text'], storeFields: ['title', 'titles'] })
}

/**
 * The questions whose first answer is another page.
 * @param {{ search: (query: string, options: object) => { id: string }[] }} index
 */
export const unanswered = index =>
  Object.entries(QUESTIONS).flatMap(([question, expected]) => {
    const [first] = index.search(question, { fuzzy: 0.2, prefix: true, ...searchOptions })
    return first && expected.test(first.id) ? [] : [`${question}: ${first?.id ?? 'nothing'}`]
  })
