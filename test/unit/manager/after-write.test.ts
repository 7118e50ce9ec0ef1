// What the failure of a verb says that writes more than once: "certainly nothing was written" only where that holds of all.

import { type Session, SessionStoreError } from 'coatcheck'
import { ReferenceStore } from 'coatcheck/custom-store/testing'
import { describe, expect, it } from 'vitest'
import { afterWrite, eachWrite } from '../../../src/guard/store-calls.ts'
import { barrierManagers } from '../../support/barrier-managers.ts'
import type { Verb } from '../../support/barrier-store.ts'

const user = { id: 1, name: 'ada' }
const full = () => Promise.reject(new SessionStoreError('update', 'not-applied', 'update: the store is full'))
const WRITES: readonly Verb[] = ['create', 'update', 'touch', 'replace', 'delete', 'deleteUser']

describe('a step after a write', () => {
  it('that was not applied is told as one of unknown outcome, with the failure as its cause', async () => {
    const cause = await full().catch(error => error)
    const told = await afterWrite(() => Promise.reject(cause)).catch(error => error)
    expect(told).toBeInstanceOf(SessionStoreError)
    expect(told).toMatchObject({ operation: 'update', outcome: 'unknown', message: 'update: the store is full', cause })
  })

  it('answers, and fails in any other way, as it does', async () => {
    expect(await afterWrite(async () => 1)).toBe(1)
    for (const error of [new SessionStoreError('delete', 'unknown', 'delete: no answer'), new RangeError('no clock')])
      await expect(afterWrite(() => Promise.reject(error))).rejects.toBe(error)
  })
})

it('the end of a session whose series has ended is such a step', async () => {
  const { sessions, store } = barrierManagers(new ReferenceStore(), { rememberFor: '30d' })
  const session = await sessions.create({ user })
  await sessions.issueRememberToken(session)
  store.every('delete', (proceed, [key]) => (key === session.key ? full() : proceed()))
  await expect(sessions.revoke(user.id, session.key)).rejects.toMatchObject({ outcome: 'unknown' })
})

it('of several writes a failure is told as it is at the first, and of unknown outcome after that', async () => {
  await expect(eachWrite([1, 2], full)).rejects.toMatchObject({ outcome: 'not-applied' })
  await expect(eachWrite([1, 2], async each => each === 2 && full())).rejects.toMatchObject({ outcome: 'unknown' })
})

type At = ReturnType<typeof barrierManagers>
/** What stands before the call, and the call. */
const VERBS: Readonly<Record<string, (at: At) => Promise<() => Promise<unknown>>>> = {
  'a logout of a remembered session': async at => {
    const { session } = await remembered(at)
    return () => at.sessions.destroy(session.secret)
  },
  'a login in place of a remembered session': async at => {
    const { session } = await remembered(at)
    return () => at.sessions.logIn(session, { user })
  },
  'a login with an ID that finds nothing': async at => {
    const old = await at.sessions.create({ user })
    await at.manager().regenerate(old)
    return () => at.sessions.logIn(old.secret, { user })
  },
  'a login in place of a session that a parallel request gave a new ID': async at => {
    const old = await at.sessions.create({ user })
    await at.manager().regenerate(old)
    return () => at.sessions.logIn(old, { user })
  },
  recall: async at => {
    const token = await at.sessions.issueRememberToken(await at.sessions.create({ user }))
    return () => at.sessions.redeemRememberToken(token)
  },
  'recall of a session that expired before it was used': async at => {
    const { token } = await remembered(at)
    at.clock.advance(3_600_000)
    return () => at.sessions.redeemRememberToken(token)
  },
  'recall of a token whose answer was lost': async at => {
    const { token } = await remembered(at)
    at.clock.advance(700_000)
    return () => at.sessions.redeemRememberToken(token)
  },
  'recall of a stolen token': async at => {
    const { token, session } = await remembered(at)
    await at.sessions.get(session.secret)
    at.clock.advance(700_000)
    return () => at.sessions.redeemRememberToken(token)
  },
  'forget, of a token that began a session': async at => {
    const { next } = await remembered(at)
    return () => at.sessions.revokeRememberToken(next)
  },
  'revoke, of a device with a token': async at => {
    const session = await at.sessions.create({ user })
    await at.sessions.issueRememberToken(session)
    return () => at.sessions.revoke(1, session.key)
  },
  'updateUserSessions, of several sessions': async at => {
    for (let count = 0; count < 10; count += 1) await at.sessions.create({ user })
    return () => at.sessions.updateUserSessions(1, { role: 'none' })
  },
  'invalidateAll, of several users': async at => {
    for (const id of [1, 2, 3]) await at.sessions.create({ user: { id, name: '' } })
    for (let count = 0; count < 10; count += 1) await at.sessions.create()
    return () => at.sessions.invalidateAll()
  },
}

/** A token and the session that it began, which has not been used. */
async function remembered({ sessions }: At): Promise<{ token: string; next: string; session: Session }> {
  const token = await sessions.issueRememberToken(await sessions.create({ user }))
  const { session, token: next } = (await sessions.redeemRememberToken(token))!
  return { token, next, session }
}

it.each(Object.keys(VERBS))('%s says that nothing was written only where nothing was', async name => {
  let outcomes = ''
  for (let failing = 1; ; failing += 1) {
    const at = barrierManagers(new ReferenceStore(), { rememberFor: '30d' })
    const call = await VERBS[name]!(at)
    const before = at.events.length
    let [calls, written] = [0, 0]
    const every = async (verb: Verb, proceed: () => Promise<any>) => {
      calls += 1
      if (calls === failing) throw new SessionStoreError(verb as never, 'not-applied', `${verb}: the store is full`)
      const answer = await proceed()
      const isWrite = WRITES.includes(verb) && answer !== 'gone' && answer !== 'conflict' && answer !== false
      if (isWrite && answer.outcome !== 'gone' && answer.outcome !== 'conflict') written += 1
      return answer
    }
    for (const verb of [...WRITES, 'read', 'listUser', 'scan'] as const)
      at.store.every(verb, proceed => every(verb, proceed))
    const error = await call().then(
      () => null,
      failure => failure,
    )
    if (calls < failing) break
    if (error === null) continue
    expect(error).toBeInstanceOf(SessionStoreError)
    if (written > 0) expect(error.outcome, `call ${failing}`).toBe('unknown')
    outcomes += error.outcome
    expect(at.events.slice(before).filter(({ type }) => type === 'store-error')).toHaveLength(1)
  }
  // Of each there are such failures, and others.
  expect(outcomes).toContain('unknown')
  expect(outcomes).toContain('not-applied')
})
