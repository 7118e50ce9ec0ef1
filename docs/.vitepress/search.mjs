// @ts-check
// The search of the site: what is in its index, and in which order it answers.
import { readdirSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { describe } from './pages.mjs'

// The one that VitePress has, and puts into the site.
const { resolve } = createRequire(import.meta.url)
export const { default: MiniSearch } = await import(
  createRequire(resolve('vitepress/package.json')).resolve('minisearch')
)

/**
 * Pages, each with what it is about, and the API reference: no files of the repository.
 * @param {string} text
 * @param {{ relativePath: string, frontmatter?: Record<string, unknown> }} env
 * @param {{ render: (text: string, env: object) => string }} md
 */
export function renderForSearch(text, env, md) {
  if (env.relativePath.startsWith('repository/')) return ''
  return md.render(text, env).replace('</h1>', `</h1><p>${describe(env.relativePath) ?? ''}</p>`)
}

/**
 * The word itself counts more than what begins like it, and that more than what is spelt like it; titles more than text;
 * guides more than what is read once, and that more than members of the API. The browser gets this function as text: it stands alone.
 */
export const searchOptions = {
  combineWith: 'AND',
  prefix: true,
  fuzzy: 0.2,
  weights: { prefix: 0.2, fuzzy: 0.05 },
  boost: { title: 6, titles: 3, text: 1 },
  boostDocument: (/** @type {string} */ id) => {
    if (id.startsWith('/api/')) return 0.02
    return id.startsWith('/guide') ? 2 : id.startsWith('/moving') ? 0.5 : 1
  },
}

/** What people look for, and the pages that come first. @type {Record<string, RegExp>} */
export const QUESTIONS = {
  login: /^\/(?:start|guide\/login-page)/,
  logout: /^\/guide\.html/,
  middleware: /^\/(?:guide\/guard|servers|connect)/,
  jwt: /^\/compare/,
  passport: /^\/(?:connect|moving\/express-session)/,
  401: /^\/(?:guide\/guard|errors-and-events|runbook)/,
  'rate limit': /^\/guide\/login-page/,
  'brute force': /^\/guide\/login-page/,
  'express 4': /^\/servers\/express/,
  maxAge: /^\/(?:options|moving\/express-session|connect)/,
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
    const [first] = index.search(question, searchOptions)
    return first && expected.test(first.id) ? [] : [`${question}: ${first?.id ?? 'nothing'}`]
  })
