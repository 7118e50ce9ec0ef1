// @ts-check
// The site. `npm run docs` first gathers its pages in .tmp/site: docs/**/*.md, the API reference, and what they link to.
import { readFileSync } from 'node:fs'
import { defineConfig } from 'vitepress'
import { describe, nameOf, SECTIONS, SUBPATHS } from './pages.mjs'
import { renderForSearch, searchOptions } from './search.mjs'
import { slug } from './slug.mjs'

const manifest = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8'))
/** Where the repository can be seen, if package.json says so: https://github.com/owner/name. */
const repository = String(manifest.repository?.url ?? manifest.repository ?? '').replace(/^git\+|\.git$/g, '')
const isPublished = repository.startsWith('https://')

const gathered = new URL('../../.tmp/site/', import.meta.url)
/** What a search engine shows of a page. @param {string} path of its Markdown @param {string} title */
function descriptionOf(path, title) {
  const described = describe(path)
  if (described) return described
  if (path.startsWith('api/')) {
    // Its docstring, which is the first paragraph below the heading and the signature.
    const parts = readFileSync(new URL(path, gathered), 'utf8').split('\n\n')
    const plain = (parts.find(part => /^[^#>|<]/.test(part)) ?? '')
      .replaceAll(/\[([^\]]*)\]\([^)]*\)/g, '$1')
      .replaceAll(/[`*\\]/g, '')
      .replaceAll('\n', ' ')
    return `${title}. ${plain.split(/(?<=\.) /)[0]}`
  }
  return `${title}, a file in the repository of coatcheck.`
}

/** How pages are laid out that are not like the others. @type {Record<string, Record<string, unknown>>} */
const LAYOUTS = {
  'index.md': { layout: 'home', pageClass: 'home', titleTemplate: 'logged out means logged out' },
  // The room of the outline is for the tables.
  'compare.md': { aside: false, pageClass: 'compare' },
  'api/': { pageClass: 'api' },
}

/** @param {string} text @param {string} link */
const page = (text, link) => ({ text, link })

export default defineConfig({
  title: 'coatcheck',
  description: 'Server-side sessions for Node.js where logged out means logged out',
  lang: 'en',
  head: [['link', { rel: 'icon', type: 'image/svg+xml', href: '/hanger.svg' }]],
  srcDir: '../.tmp/site',
  // What is sent as it is, Markdown too.
  srcExclude: ['public/**'],
  outDir: '../site',
  cacheDir: '../.tmp/vitepress',
  // The index of the search is one large file.
  vite: { build: { chunkSizeWarningLimit: 3000 } },
  transformPageData: page => {
    page.description = descriptionOf(page.relativePath, page.title)
    Object.assign(page.frontmatter, LAYOUTS[page.relativePath.replace(/^api\/.*/, 'api/')])
    // Their files are elsewhere, or are made.
    if (/^(?:api|repository)\//.test(page.relativePath)) page.frontmatter.editLink = false
  },
  transformHead: ({ pageData: { title, description } }) => [
    ['meta', { property: 'og:type', content: 'website' }],
    ['meta', { property: 'og:site_name', content: 'coatcheck' }],
    ['meta', { property: 'og:title', content: title }],
    ['meta', { property: 'og:description', content: description }],
  ],
  markdown: { anchor: { slugify: slug }, toc: { slugify: slug } },
  themeConfig: {
    logo: '/hanger.svg',
    search: {
      provider: 'local',
      options: { _render: renderForSearch, miniSearch: { searchOptions } },
    },
    outline: [2, 3],
    ...(isPublished && {
      editLink: { pattern: `${repository}/edit/main/docs/:path`, text: 'Edit this page' },
      socialLinks: [{ icon: /** @type {const} */ ('github'), link: repository }],
    }),
    nav: [
      page('Start', '/start'),
      page('Guides', '/guide'),
      page('Compare', '/compare'),
      page('API', '/api/'),
      page(`v${manifest.version}`, '/repository/CHANGELOG'),
    ],
    sidebar: [
      ...SECTIONS,
      {
        text: 'API',
        link: '/api/',
        collapsed: true,
        items: Object.keys(SUBPATHS).map(key => page(nameOf(key), `/api/${nameOf(key)}/`)),
      },
    ],
  },
})
