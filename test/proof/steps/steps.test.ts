// The steps of a store on its server, in every order: how a logout follows a new ID, a logout everywhere meets logins and new
// IDs, a login takes the place of a session on another shard. A mistake in a script or a statement has to be found.
import type { SessionRecord } from 'coatcheck/custom-store'
import { describe, expect, it } from 'vitest'
import { HOUR, keyIn, recordAt, T0, writeId } from '../../support/records.ts'
import { describeEngine } from '../../support/services/engines.ts'
import { started } from '../../support/started.ts'
import type { Call } from '../engines/model.ts'
import { type Mistake, type Open, postgresServer, redisServer } from './servers.ts'
import { type Scene, walk } from './steps.ts'

const now = T0
/** Of user 42, whose shard this is, or of a visitor on another one. */
const SHARD = 'c0d'
const record = (more: Partial<SessionRecord> = {}) => recordAt(T0, { key: keyIn(SHARD), passwordVersion: 1, ...more })
const create = (made: SessionRecord): Call => ({ verb: 'create', record: made, now })
const end = ({ key }: SessionRecord): Call => ({ verb: 'delete', key, now })
const list = { verb: 'listUser', userId: '42', kind: 'session', now } satisfies Call
const update = ({ key }: SessionRecord): Call => {
  const change = { data: '1', seenAt: T0, expiresAt: T0 + HOUR, writeId: writeId() }
  return { verb: 'update', key, version: 1, change, now }
}
const endUser = (more: { exceptKey?: string; minPasswordVersion?: number } = {}): Call => {
  return { verb: 'deleteUser', userId: '42', options: { minPasswordVersionUntil: T0 + HOUR, ...more }, now }
}
/** A new ID leaves a forward, a login does not. */
const replace = (old: SessionRecord, made: SessionRecord, isLogIn = false): Call => {
  const options = isLogIn ? {} : { forward: { salt: '', until: T0 + HOUR } }
  return { verb: 'replace', oldKey: old.key, oldVersion: 1, record: made, options, now }
}

const [first, second, third, login] = [record(), record(), record(), record({ createdAt: T0 + 1 })]
const visitor = record({ key: keyIn('abc'), userId: null, userName: null, passwordVersion: null })
const [other, series] = [record({ createdAt: T0 + 2, passwordVersion: null }), record({ kind: 'remember' })]
const begun = record({ parent: first.key, kind: 'remember' })

const SCENES = {
  'a new ID, and a logout by the old one': {
    before: [create(first)],
    calls: [replace(first, second), end(first), update(first)],
  },
  'a logout by the first of three IDs, and a fault': {
    before: [create(first), replace(first, second), replace(second, third)],
    calls: [end(first)],
    faults: 1,
  },
  'a new ID, and a logout everywhere': { before: [create(first)], calls: [replace(first, second), endUser()] },
  'a new ID of the session that a logout everywhere spares': {
    before: [create(first), create(series)],
    calls: [replace(first, second), endUser({ exceptKey: first.key })],
  },
  'a login with the old password, and a logout everywhere': {
    before: [create(first)],
    calls: [create(login), endUser({ minPasswordVersion: 2 })],
  },
  'a new ID, and a list': { before: [create(first)], calls: [replace(first, second), list] },
  'a new ID, and a series for the session, beside a logout everywhere': {
    before: [create(first)],
    calls: [endUser({ exceptKey: first.key }), replace(first, second), create(begun)],
  },
  'a logout and a list, and a series for the session, beside a logout everywhere': {
    before: [create(first)],
    calls: [endUser({ exceptKey: first.key }), [end(first), { ...list, kind: 'remember' }], create(begun)],
  },
} satisfies Record<string, Omit<Scene, 'name'>>

const FROM_ELSEWHERE = {
  'a login in the place of a visitor, and a write of that one': {
    before: [create(visitor)],
    calls: [replace(visitor, login, true), update(visitor)],
  },
  'a login in the place of a visitor, and a logout': {
    before: [create(visitor)],
    calls: [replace(visitor, login, true), end(visitor)],
    faults: 1,
  },
  'two logins in the place of one visitor': {
    before: [create(visitor)],
    calls: [replace(visitor, login, true), replace(visitor, other, true)],
  },
  'a login in the place of a visitor, and a logout everywhere': {
    before: [create(visitor), create(first)],
    calls: [replace(visitor, other, true), endUser({ minPasswordVersion: 2 })],
  },
} satisfies Record<string, Omit<Scene, 'name'>>

/** Walks through the scenes, and through one of them with each mistake, which has to be found. */
function walks<Name extends string>(
  start: () => Promise<{ open: Open; stop(): Promise<void> }>,
  scenes: Record<Name, Omit<Scene, 'name'>>,
  mistakes: readonly (readonly [name: string, scene: NoInfer<Name>, mistake: Mistake])[],
) {
  const server = started(start)
  const walked = async (name: Name, mistake?: Mistake) => {
    const opened = await server().open(mistake)
    return walk(opened, { name, ...scenes[name] }).finally(() => opened.stop())
  }

  it.each(Object.keys(scenes) as Name[])('%s: each order is one of whole calls', async name => {
    expect(await walked(name)).toBeGreaterThan(1)
  })

  describe('finds a server on which', () => {
    it.each(mistakes)('%s', async (_, scene, mistake) => {
      await expect(walked(scene, mistake)).rejects.toThrow(/no order of these calls explains their answers/)
    })
  })
}

describeEngine('redis', 'the steps of the Redis store', () => {
  const LEFT = "redis.call('SET', KEYS[1], 'x ' .. ARGV[4], 'PX', ARGV[5])"
  walks(redisServer, { ...SCENES, ...FROM_ELSEWHERE }, [
    [
      'a logout does not follow a new ID',
      'a new ID, and a logout by the old one',
      { from: "if movedTo(value) then return {'moved', clock, movedTo(value)} end", to: '' },
    ],
    [
      'a logout everywhere reads the index once',
      'a new ID, and a logout everywhere',
      { from: 'if #answer > 3 then return', to: 'if #answer > 3 and #KEYS == first then return' },
    ],
    [
      'a logout everywhere does not follow the one that it spares',
      'a new ID of the session that a logout everywhere spares',
      { from: "if next then return {'moved', clock, next} end", to: '' },
    ],
    [
      'a logout everywhere raises no minimum where it ended something',
      'a login with the old password, and a logout everywhere',
      { from: "if ARGV[6] ~= '' then", to: "if ARGV[6] ~= '' and count == 0 then" },
    ],
    [
      'a login elsewhere does not look at the minimum',
      'a login in the place of a visitor, and a logout everywhere',
      { from: "then return {'stale-login', clock} end", to: 'then end' },
    ],
    [
      'a login elsewhere ends what has changed meanwhile',
      'a login in the place of a visitor, and a write of that one',
      { from: "if r.version ~= tonumber(ARGV[3]) then return {'conflict', clock} end", to: '' },
    ],
    [
      'a login elsewhere that is refused is not taken back',
      'a login in the place of a visitor, and a logout',
      { from: 'if r and r.writeId == ARGV[3] then', to: 'if false then' },
    ],
    [
      'a login elsewhere leaves the session that was there',
      'a login in the place of a visitor, and a write of that one',
      { from: LEFT, to: '' },
    ],
    [
      'the mark of a login does not say of which',
      'two logins in the place of one visitor',
      { from: "if value == 'x ' .. ARGV[4] then", to: "if string.sub(value or '', 1, 2) == 'x ' then" },
    ],
  ])
})

describeEngine('postgresql', 'the statements and locks of the PostgreSQL store', () => {
  walks(postgresServer, SCENES, [
    [
      'a series does not lock the session that asks for it',
      'a logout and a list, and a series for the session, beside a logout everywhere',
      { from: 'FOR SHARE', to: '' },
    ],
  ])
})
