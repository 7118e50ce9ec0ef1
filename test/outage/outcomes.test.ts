// What the failure of a method says that writes more than once: "certainly nothing was written" only where that holds of all.

import { type Session, SessionStoreError } from 'coatcheck'
import { ReferenceStore } from 'coatcheck/custom-store/testing'
import { expect, it } from 'vitest'
import type { Verb } from '../support/barrier-store.ts'
import { setUp, times, user } from '../support/manager-kit.ts'

const WRITES: readonly Verb[] = ['create', 'update', 'touch', 'replace', 'delete', 'deleteUser']

type At = ReturnType<typeof setUp>
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
  'a remember token': async at => {
    const token = await at.sessions.issueRememberToken(await at.sessions.create({ user }))
    return () => at.sessions.redeemRememberToken(token)
  },
  'a remember token whose session expired before it was used': async at => {
    const { token } = await remembered(at)
    at.clock.advance(3_600_000)
    return () => at.sessions.redeemRememberToken(token)
  },
  'a remember token whose answer was lost': async at => {
    const { token } = await remembered(at)
    at.clock.advance(700_000)
    return () => at.sessions.redeemRememberToken(token)
  },
  'a stolen remember token': async at => {
    const { token, session } = await remembered(at)
    await at.sessions.get(session.secret)
    at.clock.advance(700_000)
    return () => at.sessions.redeemRememberToken(token)
  },
  'revokeRememberToken, of a token that began a session': async at => {
    const { next } = await remembered(at)
    return () => at.sessions.revokeRememberToken(next)
  },
  'revoke, of a device with a token': async at => {
    const session = await at.sessions.create({ user })
    await at.sessions.issueRememberToken(session)
    return () => at.sessions.revoke(1, session.key)
  },
  'updateUserSessions, of several sessions': async at => {
    for (const _ of times(10)) await at.sessions.create({ user })
    return () => at.sessions.updateUserSessions(1, { role: 'none' })
  },
  'invalidateAll, of several users': async at => {
    for (const id of [1, 2, 3]) await at.sessions.create({ user: { id, name: '' } })
    for (const _ of times(10)) await at.sessions.create()
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
    const at = setUp({ rememberFor: '30d' }, new ReferenceStore())
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
