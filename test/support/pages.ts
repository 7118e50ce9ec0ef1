// The pages that people read, README.md and docs/**/*.md, and what is in them: blocks of code, tables, headings, links.
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect } from 'vitest'

export const root = fileURLToPath(new URL('../..', import.meta.url))
export const read = (path: string) => readFileSync(join(root, path), 'utf8')

const markdown = (folder: string) =>
  readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
    .filter(path => path.endsWith('.md') && !path.startsWith('node_modules/'))
    .map(path => join(folder, path))
    .sort()

/** README.md and docs/**: their code is run. */
export const PAGES = ['README.md', ...markdown('docs')]
/** Every page of the repository. */
export const ALL_PAGES = [...PAGES, 'CHANGELOG.md', ...markdown('.github')]

export interface Block {
  /** `README.md:12`: the page and the line of the opening fence. */
  readonly place: string
  readonly page: string
  readonly language: string
  readonly code: string
  /** The HTML comments directly above the fence, `NAME: VALUE` or a name alone. */
  readonly markers: ReadonlyMap<string, string>
}

const FENCE = /^((?: *<!--(?:(?!-->)[\s\S])*-->\n)*)( *)(`{3,})(\w*)\n((?:.*\n)*?)\2\3$/gm

export function blocksOf(page: string): Block[] {
  const text = read(page)
  return [...text.matchAll(FENCE)].map(match => {
    const [, comments = '', indent = '', , language = '', code = ''] = match
    const line = text.slice(0, match.index + comments.length).split('\n').length
    const markers = [...comments.matchAll(/<!-- ([a-z ]+?)(?::\s((?:(?!-->)[\s\S])*?))?\s*-->/g)]
    return {
      place: `${page}:${line}`,
      page,
      language,
      code: code.replaceAll(new RegExp(`^${indent}`, 'gm'), ''),
      markers: new Map(markers.map(([, name, value = '']) => [name!, value] as const)),
    }
  })
}

export const BLOCKS = PAGES.flatMap(blocksOf)

/** The rows of the first table under a heading of a page, without its head. */
export function table(page: string, heading: string): string[][] {
  const section = read(page)
    .split(/^#+ /m)
    .find(text => text.startsWith(`${heading}\n`))
  const lines = (section ?? '').split('\n')
  const first = lines.findIndex(line => line.startsWith('| --- |'))
  expect(first, `a table under "${heading}" in ${page}`).toBeGreaterThan(0)
  const rest = lines.slice(first + 1)
  return rest
    .slice(
      0,
      rest.findIndex(line => !line.startsWith('|')),
    )
    .map(cellsOf)
}

/** The cells of a row of a table. */
export const cellsOf = (row: string) =>
  row
    .split('|')
    .slice(1, -1)
    .map(cell => cell.trim())

/** A page without its blocks of code. */
export const prose = (page: string) => read(page).replaceAll(FENCE, '')
