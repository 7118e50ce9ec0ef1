// What the site is made of, without building it: `npm run docs` does, follows its links, draws its diagrams and asks its search.
import { describe, expect, it } from 'vitest'
import { llmsFull, llmsIndex } from '../../../docs/.vitepress/llms.mjs'
import { DESCRIPTIONS, SECTIONS } from '../../../docs/.vitepress/pages.mjs'
import { cellsOf, PAGES, read } from '../../support/pages.ts'

const OWN = PAGES.filter(page => page.startsWith('docs/'))
const addressOf = (page: string) => page.replace(/^docs/, '').replace(/(?:index)?\.md$/, '')

describe('the sidebar', () => {
  it('leads to each page once', () => {
    const links = SECTIONS.flatMap(({ items }) => items.map(({ link }) => link)).filter(
      link => !link.startsWith('/repository/'),
    )
    expect(links.toSorted()).toEqual(OWN.map(addressOf).toSorted())
  })
})

describe('the table of the front page', () => {
  it('has the numbers of the first row that Compare has for each library', () => {
    const rows = (page: string, first: RegExp) =>
      read(page)
        .split('\n')
        .filter(line => first.test(line))
        .map(cellsOf)
    const shown = rows('docs/index.md', /^\| [^|]+ \| \d/)
    expect(shown.length).toBeGreaterThan(4)
    for (const [library, ...counts] of shown) {
      const asked = rows('docs/compare.md', /^(?:\|[^|]+){2}\| \d/).find(([name]) => name!.startsWith(library!))!
      expect([library, ...counts]).toEqual([library, ...asked.slice(2, 5).map(cell => `${Number.parseInt(cell, 10)}`)])
    }
  })
})

describe('llms.txt', () => {
  it('is in the repository as the pages have it: `node docs/.vitepress/llms.mjs` writes it', () => {
    expect(read('llms.txt')).toBe(llmsIndex())
  })

  it('leads to each page, and llms-full.txt has each, without what only tests read', () => {
    const names = read('llms.txt')
    const all = llmsFull()
    for (const page of OWN) {
      expect(names).toContain(`](${page}): ${DESCRIPTIONS.get(addressOf(page))}\n`)
      expect(all).toContain(`\n<!-- ${page} -->\n\n${read(page).match(/^# .*$/m)![0]}\n`)
    }
    expect(all.match(/<!-- (?!docs\/)/g)).toBeNull()
    expect(all).not.toContain('requests per second of CPU')
  })
})
