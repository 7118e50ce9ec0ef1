// The tables of docs/compare.md are what the command prints. Here are its rows that need no server.
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { beforeAll, describe, expect, it } from 'vitest'
import { read, root } from '../../support/pages.ts'
import { build } from '../../support/scripts/build.mjs'

/** What a table says of each library and store. */
function rowsOf(text: string): Map<string, string[]> {
  const [head, , ...lines] = text.slice(text.indexOf('| library')).split('\n')
  expect(head).toContain('late save undoes a logout')
  const rows = lines.slice(
    0,
    lines.findIndex(line => !line.startsWith('|')),
  )
  return new Map(
    rows.flatMap(line => {
      const cells = line.split('|').slice(1, -1)
      const [library, stores, ...answers] = cells.map(cell => cell.trim())
      const each = stores!.replace('connect over ', 'connect ').split(', ')
      return each.map(store => [`${library}, ${store.replace('coatcheck/connect ', 'connect, ')}`, answers] as const)
    }),
  )
}

describe('the comparison of libraries', () => {
  let printed: Map<string, string[]>
  const shown = rowsOf(read('docs/compare.md'))
  beforeAll(async () => {
    await build()
    const { stdout } = await promisify(execFile)(process.execPath, ['bench/bench.mjs', 'compare', '--quick'], {
      cwd: root,
    })
    printed = rowsOf(stdout)
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

  it('prints what the page shows, but for seconds on a busy machine', () => {
    const withoutSeconds = (cells: string[] | undefined) => cells?.map(cell => cell.replace(/^< \d+/, '<'))
    for (const [row, cells] of printed)
      expect([row, withoutSeconds(cells)]).toEqual([row, withoutSeconds(shown.get(row))])
  })

  it('finds nothing in coatcheck, on any store, if passwords have a version', () => {
    for (const store of ['memory', 'Redis', 'PostgreSQL'])
      expect([store, shown.get(`coatcheck, ${store}`)]).toEqual([store, ['0', '0', '0', '0', '0', 'yes', '< 1']])
    expect(shown.get('coatcheck, memory without a password version')).toEqual(['0', '0', '0', '0', '20', 'yes', '< 1'])
  })
})
