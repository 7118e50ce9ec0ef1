// What the site is made of, without building it: `npm run docs` does, and asks the search that it built.
import { describe, expect, it } from 'vitest'
import { drawAll } from '../../../docs/.vitepress/diagrams.mjs'
import { llmsFull, llmsIndex } from '../../../docs/.vitepress/llms.mjs'
import { DESCRIPTIONS, describe as describePage, SECTIONS } from '../../../docs/.vitepress/pages.mjs'
import { MiniSearch, QUESTIONS, searchOptions, unanswered } from '../../../docs/.vitepress/search.mjs'
import { PAGES, prose, read } from '../../support/pages.ts'

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

describe('the search', () => {
  // As the site splits its pages: a heading, and the text below it.
  const sections = OWN.flatMap(page => {
    const parts = prose(page).split(/^#+ /m).slice(1)
    const [title] = parts[0]!.split('\n')
    return parts.map((part, index) => {
      const end = part.indexOf('\n')
      const own = part.slice(0, end)
      const text = index === 0 ? `${describePage(page.replace('docs/', ''))} ${part}` : part
      return { id: `${addressOf(page)}.html#${index}`, title: own, titles: index === 0 ? [] : [title], text }
    })
  })
  // Nothing could answer better than a member of the API that is called like the question.
  const members = Object.keys(QUESTIONS).map(question => ({
    id: `/api/coatcheck.html#${question}`,
    title: question,
    titles: ['coatcheck'],
    text: question,
  }))
  const indexOf = (documents: object[]) => {
    const index = new MiniSearch({ fields: ['title', 'titles', 'text'], storeFields: ['title', 'titles'] })
    index.addAll(documents)
    return index
  }

  it('finds a guide before any member of the API', () => {
    expect(unanswered(indexOf([...sections, ...members]))).toEqual([])
  })

  it('would answer with the member if pages were not preferred', () => {
    const index = indexOf([...sections, ...members])
    const { boostDocument: _, ...plain } = searchOptions
    const first = Object.keys(QUESTIONS).map(question => index.search(question, plain)[0]!.id)
    expect(first.filter(id => id.startsWith('/api/')).length).toBeGreaterThan(2)
  })
})

describe('the table of the front page', () => {
  it('has the numbers of the first row that Compare has for each library', () => {
    const rows = (page: string, first: RegExp) =>
      read(page)
        .split('\n')
        .filter(line => first.test(line))
        .map(line =>
          line
            .split('|')
            .slice(1, -1)
            .map(cell => cell.trim()),
        )
    const shown = rows('docs/index.md', /^\| [^|]+ \| \d/)
    expect(shown.length).toBeGreaterThan(4)
    for (const [library, ...counts] of shown) {
      const asked = rows('docs/compare.md', /^(?:\|[^|]+){2}\| \d/).find(([name]) => name!.startsWith(library!))!
      expect([library, ...counts]).toEqual([library, ...asked.slice(2, 5).map(cell => `${Number.parseInt(cell, 10)}`)])
    }
  })
})

describe('the description of a page', () => {
  it('is a sentence of its own that a search engine shows whole', () => {
    const all = [...DESCRIPTIONS.values()]
    expect(new Set(all).size).toBe(all.length)
    for (const [link, text] of DESCRIPTIONS) expect(text, link).toMatch(/^[A-Za-z].{20,153}\.$/)
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

describe('a diagram', () => {
  it.each(OWN.filter(page => read(page).includes('```mermaid')))('of %s can be drawn', page => {
    const drawn = drawAll(read(page))
    expect(drawn).not.toContain('```mermaid')
    const [figure] = drawn.match(/<figure[\s\S]*?<\/figure>/)!
    expect(figure).not.toMatch(/NaN|undefined|\n\n/)
  })

  it('with a line that is not known is refused', () => {
    const block = (line: string) => `\`\`\`mermaid\nsequenceDiagram\n  participant A as a\n  ${line}\n\`\`\`\n`
    expect(() => drawAll(block('loop always'))).toThrow('cannot be drawn: loop always')
    expect(() => drawAll(block('A->>B: hello'))).toThrow('no participant B')
    expect(() => drawAll('```mermaid\nflowchart LR\n```\n')).toThrow('only sequence diagrams')
  })
})
