import type { Store } from 'coatcheck'
import type { SessionRecord } from 'coatcheck/custom-store'
import { ReferenceStore } from 'coatcheck/custom-store/testing'
import { MemoryStore } from 'coatcheck/stores/memory'
import { describe, expect, it } from 'vitest'
import { type CheckOptions, check, parts } from './checker.ts'
import { perform } from './client.ts'
import { type Entry, entriesOf } from './history.ts'
import type { Call } from './model.ts'
import { Client, cellOf } from './schedule.ts'

const NOW = 1_767_225_600_000
const HOUR = 3_600_000

const record = (key: string, over: Partial<SessionRecord> = {}): SessionRecord => ({
  ...{ key: key.padEnd(46, '_'), kind: 'session', parent: null, userId: '42', userName: 'ada', passwordVersion: null },
  ...{ data: '{}', version: 1, writeId: `write_${key}`, createdAt: NOW, seenAt: NOW },
  ...{ expiresAt: NOW + HOUR, absoluteExpiresAt: NOW + 12 * HOUR },
  ...over,
})
const [A, B] = [record('a'), record('b', { createdAt: NOW + 1 })]
const CREATED = 'created'

const create = (made: SessionRecord): Call => ({ verb: 'create', record: made, now: NOW })
const read = ({ key }: SessionRecord): Call => ({ verb: 'read', key, now: NOW })
const update = ({ key }: SessionRecord, version: number, writeId: string): Call => {
  const change = { data: `"${writeId}"`, seenAt: NOW, expiresAt: NOW + HOUR, writeId }
  return { verb: 'update', key, version, change, now: NOW }
}
const end = ({ key }: SessionRecord): Call => ({ verb: 'delete', key, now: NOW })
const endUser = (over = {}): Call => ({
  verb: 'deleteUser',
  userId: '42',
  options: { minPasswordVersionUntil: NOW + HOUR, ...over },
  now: NOW,
})
const list = (): Call => ({ verb: 'listUser', userId: '42', kind: 'session', now: NOW })
const replace = (old: SessionRecord, made: SessionRecord, forward = true): Call => ({
  ...{ verb: 'replace', oldKey: old.key, oldVersion: 1, record: made, now: NOW },
  options: forward ? { forward: { salt: '', until: NOW } } : {},
})
const forwardTo = ({ key }: SessionRecord) => ({ movedTo: key, salt: '', until: NOW })
const written = (made: SessionRecord, writeId: string, version = 2) => ({
  ...made,
  ...{ data: `"${writeId}"`, writeId, version },
})

/** A call from one instant to another, in ms, and its answer; without one, its outcome is unknown. */
type Line = readonly [from: number, to: number, call: Call, answer?: unknown, failed?: 'not-applied' | 'unknown']

const history = (lines: readonly Line[]): Entry[] =>
  lines.map(([from, to, call, answer, failed], i) => ({
    ...{ id: `${i}`, client: `c${i}`, cell: 0, call, invoked: from * 1000, deadline: to * 1000 },
    ...(answer === undefined ? {} : { answer, answered: to * 1000 }),
    ...(failed === undefined ? {} : { failed, answered: to * 1000 }),
  }))
const verdict = (lines: readonly Line[], options: CheckOptions = {}) => check(history(lines), options)

const GOOD: Record<string, readonly Line[]> = {
  'calls one after the other': [
    [0, 1, create(A), CREATED],
    [2, 3, read(A), A],
    [4, 5, end(A), true],
    [6, 7, read(A), null],
  ],
  'a read that overlaps a logout, and saw the session': [
    [0, 1, create(A), CREATED],
    [2, 9, end(A), true],
    [3, 4, read(A), A],
    [5, 6, read(A), null],
  ],
  'two updates of one version, of which one won': [
    [0, 1, create(A), CREATED],
    [2, 9, update(A, 1, 'write_x'), 'conflict'],
    [2, 9, update(A, 1, 'write_y'), 'updated'],
    [10, 11, read(A), written(A, 'write_y')],
  ],
  'a logout of unknown outcome that took effect': [
    [0, 1, create(A), CREATED],
    [2, 9, end(A)],
    [10, 11, read(A), null],
  ],
  'a logout of unknown outcome that took no effect': [
    [0, 1, create(A), CREATED],
    [2, 9, end(A)],
    [10, 11, read(A), A],
  ],
  'a logout of unknown outcome that took effect between two reads, within its time': [
    [0, 1, create(A), CREATED],
    [2, 90, end(A)],
    [10, 11, read(A), A],
    [80, 81, read(A), null],
  ],
  'a list that overlaps a renewal and has neither session': [
    [0, 1, create(A), CREATED],
    [2, 9, list(), []],
    [3, 4, replace(A, B), CREATED],
  ],
  'a login below the minimum password version that was refused': [
    [0, 1, endUser({ minPasswordVersion: 2 }), 0],
    [2, 3, create(A), 'stale-login'],
  ],
  'a logout that beats a renewal by its forward': [
    [0, 1, create(A), CREATED],
    [2, 8, replace(A, B), CREATED],
    [2, 9, end(A), true],
    [10, 11, read(B), null],
  ],
  'a login that its client repeats, and that runs again after a logout of unknown outcome': [
    [0, 3, create(A)],
    [4, 5, list(), [A]],
    [16, 82, create(A), CREATED],
    [31, 47, update(A, 1, 'write_x'), 'updated'],
    [53, 60, end(A)],
    [81, 85, update(A, 2, 'write_y'), 'conflict'],
  ],
  'a logout that found no session, and took away the forward that was left': [
    [0, 30, end(A), false],
    [1, 2, create(A), CREATED],
    [3, 4, replace(A, B), CREATED],
    [5, 6, end(B), true],
    [7, 8, read(A), forwardTo(B)],
    [20, 21, read(A), null],
  ],
}

const BAD: Record<string, readonly Line[]> = {
  'a session that lives after its logout (G1)': [
    [0, 1, create(A), CREATED],
    [2, 3, end(A), true],
    [4, 5, read(A), A],
  ],
  'a session that was gone and came back (G1)': [
    [0, 1, create(A), CREATED],
    [2, 90, end(A)],
    [10, 11, read(A), null],
    [12, 13, read(A), A],
  ],
  'an acknowledged update that is lost (G2)': [
    [0, 1, create(A), CREATED],
    [2, 3, update(A, 1, 'write_x'), 'updated'],
    [4, 5, read(A), A],
  ],
  'two updates of one version that both won (G2)': [
    [0, 1, create(A), CREATED],
    [2, 9, update(A, 1, 'write_x'), 'updated'],
    [2, 9, update(A, 1, 'write_y'), 'updated'],
  ],
  'a session from before that lives after a logout everywhere (G3)': [
    [0, 1, create(A), CREATED],
    [2, 3, create(B), CREATED],
    [4, 5, endUser(), 1],
    [6, 7, read(B), B],
  ],
  'a successor of a session that lives after a logout everywhere (G3)': [
    [0, 1, create(A), CREATED],
    [2, 9, replace(A, B), CREATED],
    [3, 20, endUser(), 1],
    [21, 22, read(B), B],
  ],
  'a login below the minimum password version (G3)': [
    [0, 1, endUser({ minPasswordVersion: 2 }), 0],
    [2, 3, create(A), CREATED],
  ],
  'a minimum password version that is lost (G3)': [
    [0, 1, endUser({ minPasswordVersion: 2 }), 0],
    [2, 3, create(record('a', { passwordVersion: 3 })), CREATED],
    [4, 5, endUser({ minPasswordVersion: 1 }), 1],
    [6, 7, create(record('c', { passwordVersion: 1 })), CREATED],
  ],
  'an ID that lives on beside its successor (G4)': [
    [0, 1, create(A), CREATED],
    [2, 3, replace(A, B), CREATED],
    [4, 5, read(A), A],
  ],
  'two successors of one ID (G4)': [
    [0, 1, create(A), CREATED],
    [2, 9, replace(A, B), CREATED],
    [2, 9, replace(A, record('c')), CREATED],
  ],
  'a write that was said not to be applied, and was (G7)': [
    [0, 1, create(A), CREATED],
    [2, 3, end(A), undefined, 'not-applied'],
    [4, 5, read(A), null],
  ],
  'a write that takes effect long after its caller gave up (G7)': [
    [0, 1, create(A), CREATED],
    [2, 9, end(A)],
    [2000, 2001, read(A), A],
    [2002, 2003, read(A), null],
  ],
  'a list without a session that lived all the time': [
    [0, 1, create(A), CREATED],
    [2, 3, list(), []],
  ],
  'a list with a session that never was': [[0, 1, list(), [A]]],
  'a forward that leads elsewhere': [
    [0, 1, create(A), CREATED],
    [2, 3, replace(A, B), CREATED],
    [4, 5, read(A), { ...forwardTo(B), movedTo: record('c').key }],
  ],
}

describe('the checker', () => {
  it.each(Object.entries(GOOD))('explains %s', (_, lines) => {
    expect(verdict(lines)).toMatchObject({ ok: true })
  })

  it.each(Object.entries(BAD))('refuses %s', (_, lines) => {
    expect(verdict(lines)).toMatchObject({ ok: false, decided: true })
  })

  it('lets a write end late only where the engine stood still in its time', () => {
    const lines = BAD['a write that takes effect long after its caller gave up (G7)']!
    const holds = (from: number, to: number) => [{ from: from * 1000, to: to * 1000, what: 'engine' as const }]
    expect(verdict(lines, { holds: holds(5, 1999) })).toMatchObject({ ok: true })
    expect(verdict(lines, { holds: holds(500, 1999) })).toMatchObject({ ok: false })
  })

  it('lets a call be applied twice only where the client sends it again', () => {
    const lines: Line[] = [
      [0, 1, create(A), CREATED],
      [2, 9, update(A, 1, 'write_x'), 'conflict'],
      [3, 4, update(written(A, 'write_x'), 2, 'write_y'), 'updated'],
      [10, 11, read(A), written(A, 'write_y', 3)],
    ]
    expect(verdict(lines)).toMatchObject({ ok: false })
    expect(verdict(lines, { rules: { resends: true } })).toMatchObject({ ok: true })
  })

  it('lets a login be delivered three times within its call, and no more', () => {
    const times = (count: number): Line[] => [
      [0, 90, create(A), CREATED],
      ...Array.from({ length: count }, (_, i): Line => [10 * i + 1, 10 * i + 9, end(A), true]),
    ]
    expect(verdict(times(3))).toMatchObject({ ok: false })
    expect(verdict(times(3), { rules: { resends: true } })).toMatchObject({ ok: true })
    expect(verdict(times(4), { rules: { resends: true } })).toMatchObject({ ok: false })
  })

  it('lets a login across two slots come to nothing half-way only where the engine says so', () => {
    const lines: Line[] = [
      [0, 1, create(A), CREATED],
      [2, 9, replace(A, B, false)],
      [10, 11, read(A), null],
      [12, 13, read(B), null],
    ]
    expect(verdict(lines)).toMatchObject({ ok: false })
    expect(verdict(lines, { rules: { crosses: () => true } })).toMatchObject({ ok: true })
  })

  it('lets a logout that failed leave the way to a session that has ended only where the engine ends it first', () => {
    const lines = (last: unknown): Line[] => [
      [0, 1, create(A), CREATED],
      [2, 3, replace(A, B), CREATED],
      [4, 9, end(A)],
      [10, 11, read(B), null],
      [12, 13, read(A), last],
      [14, 15, end(A), false],
      [16, 17, read(A), null],
    ]
    expect(verdict(lines(forwardTo(B)))).toMatchObject({ ok: false })
    expect(verdict(lines(forwardTo(B)), { rules: { deletesInSteps: true } })).toMatchObject({ ok: true })
    expect(verdict(lines(null))).toMatchObject({ ok: true })
    const other = lines({ ...forwardTo(B), movedTo: record('c').key })
    expect(verdict(other, { rules: { deletesInSteps: true } })).toMatchObject({ ok: false })
  })

  it('lets a logout everywhere end the sessions one by one only where the engine does, and leave none', () => {
    const lines = (count: number, last: unknown): Line[] => [
      [0, 1, create(A), CREATED],
      [2, 20, endUser(), count],
      [4, 5, create(B), CREATED],
      [6, 7, read(A), A],
      [8, 9, read(A), null],
      [10, 11, read(B), B],
      [21, 22, read(B), last],
    ]
    const rules = { endsUserInSteps: true }
    expect(verdict(lines(2, null))).toMatchObject({ ok: false })
    expect(verdict(lines(2, null), { rules })).toMatchObject({ ok: true })
    expect(verdict(lines(3, null), { rules })).toMatchObject({ ok: false })
    expect(verdict(lines(2, B), { rules })).toMatchObject({ ok: false })
    // Without B it was over before B began.
    expect(verdict(lines(1, null), { rules })).toMatchObject({ ok: false })
  })

  it('explains by the contract alone what many orders of an engine would hide', () => {
    const rules = {
      ...{ resends: true, endsUserInSteps: true },
      crosses: (oldKey: string, newKey: string) => oldKey[0] !== newKey[0],
    }
    const ofNobody = { userId: null, userName: null }
    const [x, y] = [record('x', ofNobody), record('y', ofNobody)]
    const [c, d, e] = ['ac', 'ad', 'ae'].map(key => record(key)) as [SessionRecord, SessionRecord, SessionRecord]
    const lines: Line[] = [
      [0, 16.9, create(x), CREATED],
      [5.3, 17.5, create(A), CREATED],
      [6, 12.9, create(y), CREATED],
      [31.7, 39.4, replace(x, c, false), CREATED],
      [33.5, 45.8, endUser({ exceptKey: record('ag').key }), 2],
      [61.5, 73.3, endUser(), 0],
      [69.4, 70.8, replace(y, d, false), CREATED],
      [93.1, 95.7, create(e), CREATED],
      [110.6, 114.9, endUser(), 2],
    ]
    expect(verdict(lines, { rules, most: 20_000 })).toMatchObject({ ok: true })
    expect(verdict([...lines, [120, 121, read(e), e]], { rules, most: 20_000 })).toMatchObject({ ok: false })
  })

  it('raises the minimum password version of a logout everywhere in several steps by the last of them', () => {
    const C = record('c')
    const lines = (last: unknown): Line[] => [
      [0, 1, create(A), CREATED],
      [2, 20, endUser({ minPasswordVersion: 2 }), 2],
      [4, 5, create(B), CREATED],
      [6, 7, read(A), A],
      [21, 22, create(C), last],
    ]
    const rules = { endsUserInSteps: true }
    expect(verdict(lines('stale-login'), { rules })).toMatchObject({ ok: true })
    expect(verdict(lines(CREATED), { rules })).toMatchObject({ ok: false })
  })

  it('shows of a long history what is wrong, and not the rest', () => {
    const others = Array.from({ length: 20 }, (_, i): Line[] => {
      const other = record(`other${i}`, { userId: `${i}` })
      return [
        [i, i + 1, create(other), CREATED],
        [i + 2, i + 3, read(other), other],
      ]
    })
    const found = verdict([
      ...others.flat(),
      ...BAD['a session that lives after its logout (G1)']!,
      [6, 7, read(A), A],
      [8, 9, update(A, 1, 'write_x'), 'gone'],
    ])
    expect(found.ok).toBe(false)
    if (!found.ok) expect(found.entries.map(({ call }) => call.verb)).toEqual(['create', 'delete', 'read'])
  })

  it('searches users and keys apart that no call connects', () => {
    const other = record('other', { userId: '7' })
    const lines: Line[] = [
      [0, 1, create(A), CREATED],
      [2, 3, create(other), CREATED],
      [4, 5, read(A), A],
      [6, 7, list(), [A]],
    ]
    expect(parts(history(lines)).map(part => part.length)).toEqual([3, 1])
  })
})

/** Histories of a store of this process, with turns of the event loop between call, store and answer. */
async function historyOf(store: Store, seed: number): Promise<Entry[]> {
  const cell = cellOf(seed, 0)
  const lines: string[] = []
  const log = (part: object) => void lines.push(JSON.stringify(part))
  const one = async (client: number) => {
    let i = 0
    const view = new Client(cell, `c${client}`, store, () => NOW + client * 100 + i * 150)
    for (; i < 14; i++) {
      for (let turns = (seed >>> (i + client)) & 3; turns > 0; turns--)
        await new Promise(resolve => setImmediate(resolve))
      const call = view.call()
      const about = { id: `${client} ${i}`, client: `c${client}`, cell: 0 }
      const { answer, failed } = await perform(store, call, log, about, 5000)
      // Now and then it did not hear the answer, and may repeat the call.
      view.heard(call, answer, (seed >>> i) % 5 === 0 ? 'unknown' : failed)
    }
  }
  await Promise.all(Array.from({ length: 4 }, (_, client) => one(client)))
  return entriesOf(lines)
}

/** Whether one of so many histories is refused. */
async function isCaught(open: () => Store, histories: number): Promise<boolean> {
  for (let seed = 1; seed <= histories; seed++) {
    const entries = await historyOf(open(), seed * 7919)
    const found = check(entries, { most: 5000 })
    if (!found.ok && found.decided) return true
  }
  return false
}

describe('of stores, the checker', { timeout: 180_000 }, () => {
  it.each([
    ['the reference', () => new ReferenceStore()],
    ['the memory store', () => new MemoryStore()],
  ] as const)('explains every history of %s', async (_, open) => {
    expect(await isCaught(open, 40)).toBe(false)
  })
})
