// The tables of docs/compare.md are what the command prints. Here are its rows that need no server.
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { beforeAll, describe, expect, it } from 'vitest'
import { read, root } from '../../support/pages.ts'
import { build } from '../../support/scripts/build.mjs'

/** The rows of the first table with that column, by library without its version and by store. */
function rowsOf(text: string, column: string): Map<string, string[]> {
  const [, ...lines] = text.slice(text.indexOf('| library, version'), text.length).split('\n')
  const head = text.slice(text.indexOf('| library, version')).split('\n', 1)[0]!
  expect(head).toContain(column)
  const rows = lines.slice(
    1,
    lines.findIndex(line => !line.startsWith('|')),
  )
  return new Map(
    rows.map(line => {
      const [library, store, ...cells] = line
        .split('|')
        .slice(1, -1)
        .map(cell => cell.trim())
      return [`${library!.replace(/ [\d.]+$/, '')}, ${store}`, cells]
    }),
  )
}

describe('the comparison of libraries', () => {
  let printed: Map<string, string[]>
  const shown = rowsOf(read('docs/compare.md'), 'late request revives a logout')
  beforeAll(async () => {
    await build()
    const { stdout } = await promisify(execFile)(process.execPath, ['bench/bench.mjs', 'compare', '--quick'], {
      cwd: root,
    })
    printed = rowsOf(stdout, 'late request revives a logout')
  }, 300_000)

  it('asks at least the libraries that the tests have', () => {
    expect([...printed.keys()]).toEqual(
      expect.arrayContaining([
        'coatcheck, memory',
        'express-session, its MemoryStore',
        '@fastify/session, its MemoryStore',
        'koa-session, a Map',
      ]),
    )
  })

  it('prints what the page shows', () => {
    for (const [row, cells] of printed) expect([row, cells]).toEqual([row, shown.get(row)])
  })

  it('finds nothing in coatcheck, on any store', () => {
    const own = [...shown].filter(([row]) => row.startsWith('coatcheck'))
    expect(own.map(([row]) => row)).toEqual(['coatcheck, memory', 'coatcheck, Redis', 'coatcheck, PostgreSQL'])
    for (const [, cells] of own) expect(new Set(cells)).toEqual(new Set(['0 of 20']))
  })
})
