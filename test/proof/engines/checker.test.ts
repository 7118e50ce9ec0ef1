import type { SessionRecord } from 'coatcheck/custom-store'
import { expect, it } from 'vitest'
import { HOUR, T0 as NOW, recordAt } from '../../support/records.ts'
import { type CheckOptions, check, parts } from './checker.ts'
import type { Entry } from './history.ts'
import type { Call } from './model.ts'

const record = (key: string, over: Partial<SessionRecord> = {}) =>
  recordAt(NOW, { key: key.padEnd(46, '_'), writeId: `write_${key}`, ...over })
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
  'a read that overlaps a logout, and saw the session': [
    [0, 1, create(A), CREATED],
    [2, 9, end(A), true],
    [3, 4, read(A), A],
    [5, 6, read(A), null],
  ],
  'two updates at once, of which the one that was answered last came first': [
    [0, 1, create(A), CREATED],
    [2, 4, update(A, 1, 'write_x'), 'conflict'],
    [2, 9, update(A, 1, 'write_y'), 'updated'],
  ],
  'a logout of unknown outcome that took effect between two reads, within its time': [
    [0, 1, create(A), CREATED],
    [2, 90, end(A)],
    [10, 11, read(A), A],
    [80, 81, read(A), null],
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

const LATE: readonly Line[] = [
  [0, 1, create(A), CREATED],
  [2, 9, end(A)],
  [2000, 2001, read(A), A],
  [2002, 2003, read(A), null],
]
const REVIVED: readonly Line[] = [
  [0, 1, create(A), CREATED],
  [2, 3, end(A), true],
  [4, 5, read(A), A],
]
const BAD: Record<string, readonly Line[]> = {
  'a session that lives after its logout (G1)': REVIVED,
  'an acknowledged update that is lost (G2)': [
    [0, 1, create(A), CREATED],
    [2, 3, update(A, 1, 'write_x'), 'updated'],
    [4, 5, read(A), A],
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
  'a write that takes effect long after its caller gave up (G7)': LATE,
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

it.each(Object.entries(GOOD))('the checker explains %s', (_, lines) => {
  expect(verdict(lines)).toMatchObject({ ok: true })
})

it.each(Object.entries(BAD))('the checker refuses %s', (_, lines) => {
  expect(verdict(lines)).toMatchObject({ ok: false, decided: true })
})

const stoodStill = (from: number, to: number): CheckOptions => ({
  holds: [{ from: from * 1000, to: to * 1000, what: 'engine' }],
})
const delivered = (times: number): Line[] => [
  [0, 90, create(A), CREATED],
  ...Array.from({ length: times }, (_, i): Line => [10 * i + 1, 10 * i + 9, end(A), true]),
]
/** A logout everywhere that ends A and then B, which began meanwhile. */
const inParts = (count: number): Line[] => [
  [0, 1, create(A), CREATED],
  [2, 20, endUser({ minPasswordVersion: 2 }), count],
  [4, 5, create(B), CREATED],
  [6, 7, read(A), A],
  [8, 9, read(A), null],
  [10, 11, read(B), B],
  [21, 22, read(B), null],
  [23, 24, create(record('c')), 'stale-login'],
]
/** What an engine keeps in a weaker form: the rules that allow it, and those that do not. */
const WEAKER: readonly (readonly [
  what: string,
  lines: readonly Line[],
  allowed: CheckOptions,
  refused: CheckOptions,
])[] = [
  ['a write ends late where the engine stood still in its time', LATE, stoodStill(5, 1999), stoodStill(500, 1999)],
  ['a client sends a login three times', delivered(3), { rules: { resends: true } }, {}],
  [
    'a login across two slots comes to nothing half-way',
    [
      [0, 1, create(A), CREATED],
      [2, 9, replace(A, B, false)],
      [10, 11, read(A), null],
      [12, 13, read(B), null],
    ],
    { rules: { crosses: () => true } },
    {},
  ],
  [
    'a logout that failed leaves the way to a session that has ended',
    [
      [0, 1, create(A), CREATED],
      [2, 3, replace(A, B), CREATED],
      [4, 9, end(A)],
      [10, 11, read(B), null],
      [12, 13, read(A), forwardTo(B)],
      [14, 15, end(A), false],
      [16, 17, read(A), null],
    ],
    { rules: { deletesInSteps: true } },
    {},
  ],
  ['a logout everywhere ends the sessions in parts', inParts(2), { rules: { endsUserInSteps: true } }, {}],
]
it.each(WEAKER)('%s only where the engine says so', (_, lines, allowed, refused) => {
  expect(verdict(lines, allowed)).toMatchObject({ ok: true })
  expect(verdict(lines, refused)).toMatchObject({ ok: false })
})

it('a login that a client sends four times, and a count that no order of the parts gives, are wrong there too', () => {
  expect(verdict(delivered(4), { rules: { resends: true } })).toMatchObject({ ok: false })
  expect(verdict(inParts(3), { rules: { endsUserInSteps: true } })).toMatchObject({ ok: false })
})

it('of a long history it shows what is wrong, and not the rest', () => {
  const others = Array.from({ length: 20 }, (_, i): Line[] => {
    const other = record(`other${i}`, { userId: `${i}` })
    return [
      [i, i + 1, create(other), CREATED],
      [i + 2, i + 3, read(other), other],
    ]
  })
  const found = verdict([...others.flat(), ...REVIVED, [6, 7, read(A), A], [8, 9, update(A, 1, 'write_x'), 'gone']])
  expect(found.ok).toBe(false)
  if (!found.ok) expect(found.entries.map(({ call }) => call.verb)).toEqual(['create', 'delete', 'read'])
  // Users and keys are searched apart that no call connects.
  expect(parts(history(others.flat())).map(part => part.length)).toEqual(others.map(() => 2))
})
