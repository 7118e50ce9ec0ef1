// Calls of the manager on one session and its user, at the same time, in one process or in two; and what must hold of
// what they answered and of what is left, in whatever order they ran and whatever went wrong on the way.
import assert from 'node:assert/strict'
import type { Redeemed, Session, UserSession } from 'coatcheck'
import type { SessionRecord } from 'coatcheck/custom-store'
import { titled } from './requests.ts'
import type { Scene } from './search.ts'
import type { Actor, Data, Manager, World } from './world.ts'

const MINUTE = 60_000
export const ada = { id: 42n, name: 'ada', passwordVersion: 1 }
const max = { id: 43n, name: 'max', passwordVersion: 1 }

/** What is there before the calls begin. */
interface Place {
  readonly world: World
  /** The process in which the session began, and another one. */
  readonly here: Manager
  readonly there: Manager
  readonly session: Session<Data>
  /** Of the series that the session asked for; `null` for an anonymous session. */
  readonly token: string | null
}

type Call = (place: Place, sessions: Manager, index: number) => Promise<unknown>

/** Each call leaves a mark of its own, so that what is lost can be told. */
export const CALLS = {
  get: ({ session }, sessions) => sessions.get(session.secret, { touch: false }),
  touch: ({ session }, sessions) => sessions.get(session.secret),
  update: ({ session }, sessions, index) =>
    sessions.update(session, draft => {
      draft.n = (draft.n as number) + 1
      draft[`by${index}`] = true
    }),
  take: ({ session }, sessions) => sessions.take(session, 'flash'),
  login: ({ session }, sessions, index) =>
    sessions.logIn(session.secret, { user: ada, data: before => ({ ...before, tag: `login ${index}` }) }),
  'login of another user': ({ session }, sessions) =>
    sessions.logIn(session.secret, {
      user: max,
      data: before => ({ ...before, tag: session.user === null ? 'of max' : (before.tag ?? 'of max') }),
    }),
  'login beside it': (_, sessions, index) => sessions.create({ user: ada, data: { tag: `login ${index}`, n: 0 } }),
  logout: ({ session }, sessions) => sessions.destroy(session.secret),
  'logout of what is held': ({ session }, sessions) => sessions.destroy(session),
  regenerate: ({ session }, sessions) => sessions.regenerate(session.secret),
  'regenerate what is held': ({ session }, sessions) => sessions.regenerate(session),
  rotate: ({ session }, sessions) => sessions.regenerate(session.secret, { grace: '1m' }),
  recall: ({ token }, sessions) => sessions.redeemRememberToken(token!),
  forget: ({ token }, sessions) => sessions.revokeRememberToken(token!),
  revoke: ({ session }, sessions) => sessions.revoke(ada.id, session.key),
  invalidateUser: (_, sessions) => sessions.invalidateUser(ada.id),
  'invalidateUser, version 2': (_, sessions) => sessions.invalidateUser(ada.id, { minPasswordVersion: 2 }),
  'invalidateUser but this': ({ session }, sessions) => sessions.invalidateUser(ada.id, { except: session }),
  invalidateAll: (_, sessions) => sessions.invalidateAll(),
  'invalidateAll but this': ({ session }, sessions) => sessions.invalidateAll({ except: session }),
  updateUserSessions: (_, sessions, index) => sessions.updateUserSessions(ada.id, { [`by${index}`]: true }),
  remember: ({ session }, sessions) => sessions.issueRememberToken(session as UserSession<Data>),
  'the idle time passes': async ({ world }) => world.advance(31 * MINUTE),
  'the clock is set back': async ({ world }) => world.advance(-10 * MINUTE),
} satisfies Record<string, Call>
export type CallName = keyof typeof CALLS

const ENDS: readonly CallName[] = [
  'logout',
  'logout of what is held',
  'revoke',
  'invalidateUser',
  'invalidateUser, version 2',
  'invalidateAll',
]
const ENDS_ALL: readonly CallName[] = [
  'invalidateUser',
  'invalidateUser, version 2',
  'invalidateUser but this',
  'invalidateAll',
  'invalidateAll but this',
]
const LOG_INS: readonly CallName[] = ['login', 'login of another user', 'login beside it']
const NEW_IDS: readonly CallName[] = ['regenerate', 'regenerate what is held']
const WRITES: readonly CallName[] = ['update', 'updateUserSessions']

export interface CallScene {
  readonly before: 'a session' | 'an anonymous session' | 'a token alone'
  readonly calls: readonly CallName[]
  /** In which process each call runs: 0 or 1. @default all in one */
  readonly processes?: readonly number[]
  readonly faults?: number
  /** How far the clock of the other process is ahead, in ms. */
  readonly skew?: number
  /** As many sessions may a user have as there are before, and one more is refused. */
  readonly isLimited?: boolean
  /** The application says at each look which password version a user has: that may take its time, fail, or never come. */
  readonly isAsked?: boolean
}

/** Whether a call makes sense there. */
export const fits = (before: CallScene['before'], call: CallName): boolean =>
  before === 'a session' || (before === 'an anonymous session' ? !NOT_ANONYMOUS.has(call) : ONLY_TOKEN.has(call))
const NOT_ANONYMOUS = new Set<CallName>([
  'recall',
  'forget',
  'revoke',
  'remember',
  'updateUserSessions',
  'invalidateUser',
  'invalidateUser, version 2',
  'invalidateUser but this',
])
const ONLY_TOKEN = new Set<CallName>([
  'recall',
  'forget',
  'invalidateUser',
  'invalidateUser, version 2',
  'invalidateAll',
  'login beside it',
  'the clock is set back',
])

export function sceneOf(scene: CallScene): Scene {
  const {
    before,
    calls,
    processes = calls.map(() => 0),
    faults = 0,
    skew = 0,
    isLimited = false,
    isAsked = false,
  } = scene
  let place: Place
  return {
    name: titled(
      `${before}: ${calls.join(' | ')}`,
      processes.includes(1) && 'in two processes',
      skew !== 0 && `whose clocks are ${skew / 1000} s apart`,
      isLimited && 'of a user at a limit',
      isAsked && 'where the application says the password version',
      faults > 0 && `${faults} faults`,
    ),
    options: { faults },
    async prepare(world) {
      const passwordVersion = () => world.callback('the password version', () => 1)
      const options = {
        ...(isLimited && { limit: { max: 1, onLimit: 'refuse' } as const }),
        ...(isAsked && { getPasswordVersion: passwordVersion }),
      }
      const here = world.manager(options)
      const there = world.manager(options, skew)
      const data = { tag: 'first', n: 0, flash: 'hello' }
      const session =
        before === 'an anonymous session' ? await here.create({ data }) : await here.create({ user: ada, data })
      const token = session.user === null ? null : await here.issueRememberToken(session as UserSession<Data>)
      place = { world, here, there, session, token }
      world.advance((before === 'a token alone' ? 24 * 60 : 10) * MINUTE)
      for (const [index, name] of calls.entries())
        world.act(name, () => (CALLS[name] as Call)(place, processes[index] === 0 ? here : there, index))
    },
    judge: () => judge(place, scene),
  }
}

async function judge(place: Place, { before, calls, isLimited = false, isAsked = false }: CallScene): Promise<void> {
  const { world, session, token } = place
  const { actors, store } = world
  const isCalm = world.faults === 0
  const did = (...names: readonly CallName[]) => calls.some(name => names.includes(name))
  const only = (...names: readonly CallName[]) => calls.every(name => names.includes(name))
  const isOutage = (error: unknown) => (error as { code?: string } | undefined)?.code === 'ERR_SESSION_STORE'
  const failed = (actor: Actor) => actor.error !== undefined
  /** Which calls with these names were acknowledged. */
  const acknowledged = (...names: readonly CallName[]) =>
    actors.filter((actor, index) => names.includes(calls[index]!) && !failed(actor))

  // What each call may answer.
  for (const [index, { name, error }] of actors.entries()) {
    if (error === undefined) continue
    const code = (error as { code?: string }).code ?? String((error as Error).stack)
    const expected: string[] = world.faults > 0 ? ['ERR_SESSION_STORE'] : []
    // What the application's own function throws is its own.
    if (isAsked && world.faults > 0 && /^Error: ECONN/.test(String(error))) continue
    if (did('invalidateUser, version 2')) expected.push('ERR_SESSION_STALE_LOGIN')
    if (isLimited && LOG_INS.includes(calls[index]!)) expected.push('ERR_SESSION_LIMIT')
    if (calls[index] === 'remember') expected.push('ERR_SESSION_UNAUTHENTICATED')
    assert.ok(expected.includes(code), `${name} fails with ${code}`)
  }

  // A touch that fails is an event, not a failed get; a user at a limit is no error to one who comes with a token.
  for (const { name, error } of actors)
    if (name === 'touch')
      assert.notEqual((error as { operation?: string } | undefined)?.operation, 'touch', 'a touch fails a get')
  // A form that was rendered before goes on to work under a new ID of the same session.
  for (const { name, value } of actors)
    if (['rotate', ...NEW_IDS].includes(name) && value)
      assert.equal((value as Session<Data>).csrfToken, session.csrfToken, 'a new ID has a CSRF token of its own')

  // An end that failed is repeated until it is acknowledged, as its caller is told to.
  const again = world.manager()
  // What docs/security.md says: of a failure in the call that deletes a series, or in the look after it, a session may be left.
  let mayLeaveOne = false
  for (const [index, actor] of actors.entries()) {
    const name = calls[index]!
    if (![...ENDS, ...ENDS_ALL, 'forget'].includes(name) || !isOutage(actor.error)) continue
    mayLeaveOne ||= ['delete', 'listUser'].includes((actor.error as { operation?: string }).operation ?? '')
    actor.value = await (CALLS[name] as Call)(place, again, index)
    actor.error = undefined
  }

  const now = world.now
  const live = [...store.records.values()].filter(({ expiresAt }) => expiresAt > now)
  const stored: (SessionRecord & { tag: unknown; content: Data })[] = []
  for await (const info of again.all())
    stored.push({ ...live.find(({ key }) => key === info.key)!, tag: info.data.tag, content: info.data as Data })
  const first = stored.filter(({ tag }) => tag === 'first')
  const series = live.filter(({ kind }) => kind === 'remember')
  const remembered = stored.filter(({ parent }) => parent !== null)
  const hasExpired = did('the idle time passes') || before === 'a token alone'

  // G1, G3: what was acknowledged as ended is dead, with what followed from it.
  if (acknowledged(...ENDS).length > 0) assert.deepEqual(keys(first), [], 'the session lives after its end')
  const seriesEnds = acknowledged('forget', ...ENDS_ALL).length > 0
  const isRevoked = acknowledged('revoke').some(({ value }) => value === true)
  if (seriesEnds || isRevoked) {
    const begun = did('remember') ? series.filter(({ parent }) => parent !== session.key) : series
    if (!did('remember') || !did('forget')) assert.deepEqual(keys(begun), [], 'a series lives after its end')
    if (!mayLeaveOne) assert.deepEqual(keys(remembered), [], 'what a remember token began outlives its series')
  }
  if (acknowledged('invalidateUser, version 2').length > 0)
    assert.deepEqual(
      keys(stored.filter(({ userId }) => userId === `${ada.id}`)),
      [],
      'a login with the old password lives',
    )

  if (acknowledged('login', 'login of another user').length > 0)
    assert.deepEqual(keys(first), [], "what a login took the place of lives on, or its data is another user's")

  // G1, G4: one session goes on under one ID, and not under the old one.
  assert.ok(first.length <= 1, `one session lives ${first.length} times`)
  const found = await again.get(session.secret, { touch: false })
  const isReplaced =
    acknowledged('login', 'login of another user').length > 0 ||
    acknowledged(...NEW_IDS).some(({ value }) => value !== null)
  if (isReplaced) assert.equal(found, null, 'the old ID still finds a session')
  if (found !== null) assert.equal(found.data.tag, 'first', 'the old ID finds another session')

  // G7: nothing but an end ends a session, and nothing but an end answers null.
  if (!hasExpired && !did(...ENDS, 'login', 'login of another user')) {
    assert.equal(first.length, 1, 'the session is gone, and nothing ended it')
    for (const actor of acknowledged('get', 'touch', 'update', 'rotate'))
      if (!did(...NEW_IDS)) assert.notEqual(actor.value, null, `${actor.name} finds nothing`)
  }

  // G2: what was acknowledged is there, once; what is said not to be applied is not.
  const writers = actors.filter((_, index) => WRITES.includes(calls[index]!))
  const isWritten = (actor: Actor) =>
    actor.error === undefined && (typeof actor.value === 'number' ? null : actor.value !== null)
  for (const { content } of [...first, ...stored.filter(({ tag }) => calls.includes('login') && tag !== 'first')]) {
    const ofLogIn = content.tag !== 'first'
    if (ofLogIn && (content.tag === undefined || calls[Number(String(content.tag).slice(-1))] !== 'login')) continue
    // A login that found no session any more began without its data.
    if (ofLogIn && content.n === undefined) continue
    // updateUserSessions sets its mark alone.
    const counting = writers.filter(({ name }) => name !== 'updateUserSessions')
    const marks = counting.filter(actor => content[`by${actors.indexOf(actor)}`] === true).length
    assert.equal(content.n, marks, 'an update counts twice, or was overwritten')
    // One beside updateUserSessions may have the change or not.
    if (ofLogIn && did('updateUserSessions')) continue
    for (const writer of writers) {
      const mark = content[`by${actors.indexOf(writer)}`] === true
      // A login that began without a session to carry over has none of its data.
      if (isWritten(writer) === true && !(ofLogIn && did(...ENDS, 'the idle time passes')))
        assert.ok(mark, `${writer.name} was acknowledged, and is lost`)
      if (isWritten(writer) === false && writer.error === undefined && !ofLogIn)
        assert.ok(!mark, `${writer.name} found no session, and was written`)
      const { outcome } = (writer.error ?? {}) as { outcome?: string }
      if (outcome === 'not-applied' && writer.name === 'update')
        assert.ok(!mark, `${writer.name}: not applied, and is there`)
    }
  }
  const takers = acknowledged('take').filter(({ value }) => value !== undefined)
  assert.ok(takers.length <= 1, 'two took one value')
  for (const { content } of first) {
    if (takers.length === 1) assert.equal(content.flash, undefined, 'what was taken is there again')
    if (did('take') && isCalm && takers.length === 0 && !hasExpired && !did('login', ...NEW_IDS, 'rotate'))
      assert.fail('the value is gone, or was given to none')
  }

  // Nothing that was acknowledged is lost: a login, a recall, a token.
  for (const actor of acknowledged(...LOG_INS, 'recall', 'rotate', ...NEW_IDS)) {
    const answer = (actor.name === 'recall' ? (actor.value as Redeemed<Data> | null)?.session : actor.value) as
      | Session<Data>
      | null
      | undefined
    if (answer === null || answer === undefined) continue
    const own = await again.get(answer.secret, { touch: false })
    if (own !== null) assert.equal(own.user?.id, answer.user?.id, 'an answer leads to a session of another')
    const isLogIn = LOG_INS.includes(actor.name as CallName)
    if (isLogIn && !did(...ENDS_ALL, 'the idle time passes'))
      assert.notEqual(own, null, `${actor.name} was acknowledged, and its session is gone`)
    if (actor.name === 'recall' && !did('forget', 'revoke', 'the idle time passes', ...ENDS_ALL))
      assert.notEqual(own, null, 'what a token began is gone')
  }
  if (isCalm) {
    const given = actors.flatMap(({ name, value }) =>
      name === 'recall'
        ? ((value as Redeemed<Data> | null)?.session.key ?? [])
        : ((value as Session | null)?.key ?? []),
    )
    for (const { key, tag } of stored)
      if (tag !== 'first') assert.ok(given.includes(key as never), 'a session lives that no caller was given')
    const recalls = acknowledged('recall')
    if (!did('forget', 'revoke', 'the idle time passes', ...ENDS_ALL) && !isLimited)
      for (const { value } of recalls) {
        assert.notEqual(value, null, 'a good token is worth nothing')
        assert.equal(
          (value as Redeemed<Data>).session.key,
          (recalls[0]!.value as Redeemed<Data>).session.key,
          'one token, two sessions',
        )
      }
    // G9: one read, one touch, and one command for a write that meets no other.
    if (only('get', 'touch', 'recall', 'login beside it', 'the clock is set back'))
      for (const { name, calls: made } of actors)
        if (name === 'get') assert.deepEqual(made, { read: 1 }, 'a get is one read')
        else if (name === 'touch') assert.ok(sum(made) <= 2 && made.read === 1, 'a get with a touch is two commands')
    const touches = actors.reduce((all, { calls: made }) => all + (made.touch ?? 0), 0)
    if (only('touch') && actors.every(({ log }) => !log.includes('never')))
      assert.ok(touches <= 2, 'more than one touch')
  }

  // G5, G6, and no alarm without a thief.
  const atRest = JSON.stringify([...store.records.values(), ...store.forwards], (_, value) =>
    typeof value === 'bigint' ? `${value}` : value,
  )
  for (const secret of [session.secret, ...(token ?? '').split('.').filter(Boolean)])
    assert.ok(!atRest.includes(secret), 'a secret is stored')
  for (const { expiresAt, absoluteExpiresAt, kind } of store.records.values()) {
    assert.ok(expiresAt <= absoluteExpiresAt, 'outlives its absolute end')
    if (kind === 'session') assert.ok(expiresAt <= world.latest + world.skew + 30 * MINUTE, 'outlives its idle time')
  }
  assert.ok(!world.events.some(({ type }) => type === 'remember-theft'), 'an alarm, and no thief')
  assert.ok(!world.events.some(({ type }) => type === 'corrupt-record' || type === 'data-reset'), 'a record is torn')
}

const keys = (records: readonly SessionRecord[]) => records.map(({ key }) => key)
const sum = (counts: Readonly<Record<string, number>>) => Object.values(counts).reduce((all, each) => all + each, 0)
