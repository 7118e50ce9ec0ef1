// The rows that PostgreSQL and MySQL send packed, beside the same cells as columns: what the one says, the other does.
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { packedList, unpacked } from '../../../stores/sql/packed.ts'
import { AT, fromRow, ROW_COLUMNS } from '../../../stores/sql/rows.ts'
import { SESSION_COLUMNS } from '../../../stores/sql/tables.ts'
import { NOW, newKey, newWriteId } from '../../support/sql/records.ts'

type Cells = Record<string, string | null>

/** What the database answers to the list: `concat` and its like take NULL for ''. */
function sent(row: Cells, userIds: 'bigint' | 'string'): (string | null)[] {
  const list = packedList(
    userIds,
    name => name,
    (cells, separator) => `${cells.join(` ${separator} `)}`,
  )
  const [packed = '', ...alone] = list.split(', ')
  return [
    packed
      .split(" '|' ")
      .map(cell => {
        const name = /^CASE (\w+) WHEN '' THEN '\?' ELSE \1 END$/.exec(cell)?.[1]
        if (name !== undefined) return row[name] === '' ? '?' : (row[name] ?? '')
        if (cell === "''") return ''
        if (!(cell in row)) throw new Error(`no such column: ${cell}`)
        return row[cell] ?? ''
      })
      .join('|'),
    ...alone.map(name => row[name] ?? null),
  ]
}

const instant = fc.integer({ min: NOW - 10, max: NOW + 10 }).map(String)
const key = fc.constant(null).map(newKey)
const anyText = fc.string({ unit: 'grapheme', maxLength: 12 })
const sound = fc.record<Cells>({
  id: key,
  kind: fc.constantFrom('session', 'remember'),
  parent: fc.option(key),
  password_version: fc.option(fc.integer({ min: 0, max: 0xffff_ffff }).map(String)),
  version: fc.integer({ min: 1, max: 99 }).map(String),
  write_id: fc.constant(null).map(newWriteId),
  created_at: instant,
  seen_at: instant,
  expires_at: instant,
  absolute_expires_at: instant,
  moved_to: fc.option(key, { freq: 8 }),
  user_id: fc.bigInt({ min: 0n, max: 2n ** 64n - 1n }).map(String),
  tenant: fc.oneof(fc.constant(''), anyText, fc.constant('a|b')),
  username: anyText,
  data: fc.oneof(fc.json(), fc.constant('|||'), anyText),
})
/** What a careless hand may write into a column that has the type of ours: only text may contain the separator. */
const careless = fc.oneof(
  fc.constantFrom(null, '-1', '0', '9223372036854775807', 'NaN', '1'),
  fc.constantFrom('a|b', '|', 'session|', '', ' '),
)
const TEXTS = new Set(['kind', 'parent', 'write_id', 'moved_to', 'tenant', 'username', 'data'])
const edited = fc
  .tuple(sound, fc.array(fc.tuple(fc.constantFrom(...ROW_COLUMNS), careless), { maxLength: 3 }))
  .map(([row, edits]) => {
    const after = { ...row }
    for (const [name, value] of edits)
      if (name !== 'id' && (TEXTS.has(name) || value === null || /^(-?\d+|NaN)$/.test(value))) after[name] = value
    return after
  })

describe('a packed row', () => {
  it('has each column of the table once', () => {
    expect([...ROW_COLUMNS].sort()).toEqual(SESSION_COLUMNS.map(({ name }) => name).sort())
  })

  it('sends a user ID that is text by itself, and one that is a number among the others', () => {
    const [row] = fc.sample(sound, 1)
    const named = { ...row!, tenant: 'shop', username: 'ada', data: '{}', user_id: '42' }
    expect(sent(named, 'bigint').slice(1)).toEqual(['shop', 'ada', '{}'])
    expect(sent(named, 'string').slice(1)).toEqual(['shop', 'ada', '{}', '42'])
  })

  it.each(['bigint', 'string'] as const)('says what its columns say, with user IDs as %s', userIds => {
    const guest = sound.map(row => ({ ...row, user_id: null, username: null }) as Cells)
    const text = fc.tuple(sound, anyText).map(([row, user]) => ({ ...row, user_id: `${user}|` }) as Cells)
    fc.assert(
      fc.property(fc.oneof(sound, guest, ...(userIds === 'string' ? [text] : [])), row => {
        const columns = ROW_COLUMNS.map(name => row[name] ?? null)
        expect(unpacked(sent(row, userIds))).toEqual(columns)
      }),
    )
  })

  it('is refused, and not taken for corrupt, where cells are missing or it came as something else', () => {
    const [row] = fc.sample(sound, 1)
    const [pack, ...alone] = sent({ ...row!, parent: null }, 'bigint')
    for (const wrong of [pack!.replace('||', '|'), '', null, undefined, Buffer.from(pack!), 5])
      expect(() => unpacked([wrong, ...alone])).toThrow('a row came otherwise than the statement says')
  })

  it.each(['bigint', 'string'] as const)(
    'is taken for what its columns are taken for after careless edits: %s',
    userIds => {
      fc.assert(
        fc.property(edited, row => {
          const columns = ROW_COLUMNS.map(name => row[name] ?? null)
          const cells = unpacked(sent(row, userIds))
          expect(cells[AT.id]).toBe(row.id)
          const [found, expected] = [fromRow(cells, NOW, userIds), fromRow(columns, NOW, userIds)]
          // Why a row is corrupt may be said otherwise; that it is may not. A write ID that is empty is taken for none.
          const isSpoiled =
            (row.write_id === '' && row.moved_to === null) ||
            ROW_COLUMNS.slice(0, AT.tenant).some(name => row[name]?.includes('|'))
          if (isSpoiled || (expected !== null && 'corrupt' in expected))
            expect(found === null || 'corrupt' in found).toBe(true)
          else expect(found).toEqual(expected)
        }),
        { numRuns: 2000 },
      )
    },
  )
})
