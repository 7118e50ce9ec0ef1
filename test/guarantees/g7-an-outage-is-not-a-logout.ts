import assert from 'node:assert/strict'
import { type SessionId, SessionStoreError } from 'coatcheck'
import { describe, it } from 'vitest'
import { faults, type Handler } from '../support/barrier-store.ts'
import { CROWDS } from '../support/crowd.ts'
import { type GuaranteeKit, times, visitsOf } from '../support/guarantee-kit.ts'
import { managerCalls } from '../support/manager-calls.ts'
import { MINUTE } from '../support/test-clock.ts'

export function anOutageIsNotALogOut({ setUp, backend: { outage } }: GuaranteeKit): void {
  describe('G7: an outage is not a logout', () => {
    it('each call tells a store that fails, hangs, or whose answer is lost; repeated afterwards it works', async () => {
      const isFault = (fault: unknown): fault is Handler => typeof fault === 'function' && fault !== faults.answers
      const tries = managerCalls(/^(?!anonymous)/).flatMap(([name, verb, run]) =>
        Object.entries(faults).flatMap(([how, fault]) => (isFault(fault) ? { name, how, fault, verb, run } : [])),
      )
      assert.equal(tries.length, 14 * 5)
      // Together: those that hang take a quarter of a second each.
      await Promise.all(
        tries.map(async ({ name, how, fault, verb, run }) => {
          const where = `${name}: ${how}`
          const at = await setUp({ rememberFor: '30d' })
          const login = await at.sessions.create({ user: at.user, data: { flash: 'hello' } })
          const held = { session: login, token: await at.sessions.issueRememberToken(login) }
          const isSilent = fault === faults.hang || fault === faults.lostReply
          // On a busy machine the time may be over before the call, or before the store behind has done it.
          let isMet = false
          for (let wait = 250; !isMet; wait *= 2) {
            let done: Promise<unknown> = Promise.resolve()
            at.store.every(verb, (proceed, args) => {
              isMet = true
              at.store.every(verb, null)
              return fault(() => {
                done = proceed()
                return done
              }, args)
            })
            const sessions = isSilent ? at.manager({ storeTimeout: `${wait}ms` }) : at.sessions
            const error: unknown = await run(sessions, held).then(
              () => assert.fail(where),
              cause => cause,
            )
            assert.ok(error instanceof SessionStoreError, where)
            isMet &&= await done.then(
              () => true,
              () => false,
            )
            if (!isMet) continue
            assert.deepEqual([error.operation, error.status], [verb, 503], where)
            assert.equal(error.outcome, verb === 'read' || verb === 'listUser' ? 'not-applied' : 'unknown', where)
          }
          const current = await at.sessions.get(login.secret)
          const isApplied = fault === faults.lostReply || fault === faults.rejectsAfter
          const isEnd = ['destroy', 'invalidateUser', 'login', 'regenerate'].includes(name)
          if (isApplied && isEnd) assert.equal(current, null, where)
          else if (isApplied && name === 'update')
            assert.deepEqual({ ...current?.data }, { flash: 'hello', n: 1 }, where)
          else if (isApplied && name === 'take') assert.deepEqual({ ...current?.data }, {}, where)
          else assert.deepEqual({ ...current?.data }, { flash: 'hello' }, where)
          // Once more, and nothing is left that could not be ended.
          const again: any = await run(at.sessions, held)
          if (name === 'create' || name === 'login') assert.ok(await at.sessions.get(again.secret), where)
          await at.sessions.invalidateUser(at.user.id)
          assert.deepEqual(await at.sessions.list(at.user.id), [], where)
          assert.equal(await at.sessions.get(login.secret), null, where)
          assert.equal(await at.sessions.redeemRememberToken(held.token), null, where)
        }),
      )
    })

    it('a visit during an outage is an error with status 503, and no cookie is touched', async () => {
      const { sessions, store, user } = await setUp({ rememberFor: '30d' })
      const session = await sessions.create({ user })
      const cookie = `session_id=${session.secret}; remember_token=${await sessions.issueRememberToken(session)}`
      for (const fault of [faults.rejects, faults.throws, faults.answers(undefined)])
        for (const run of visitsOf(cookie)) {
          for (const verb of ['read', 'delete'] as const) store.every(verb, fault)
          const { result, headers } = await run(sessions)
          assert.equal((result as SessionStoreError).status, 503)
          assert.deepEqual(headers.getSetCookie(), [])
          for (const verb of ['read', 'delete'] as const) store.every(verb, null)
        }
      assert.equal((await sessions.get(session.secret))?.user?.name, 'ada')
    })

    for (const [edge, crowd] of Object.entries(CROWDS))
      it(`each of many requests in one turn is told of the outage, keeps its cookies and works afterwards, over ${edge}`, async () => {
        const { sessions, store, user } = await setUp({ rememberFor: '30d' })
        const held = await Promise.all(times(20).map(() => sessions.create({ user })))
        const requests = await Promise.all(
          held.map(async session => ({
            cookie: `session_id=${session.secret}; remember_token=${await sessions.issueRememberToken(session)}`,
          })),
        )
        const unknown = { cookie: `session_id=${'A'.repeat(43)}; remember_token=${'B'.repeat(43)}.${'C'.repeat(43)}` }
        const all = [...requests, ...requests, unknown]
        const faulty = (fault: Handler) => async () => {
          store.every('read', fault)
          return async () => store.every('read', null)
        }
        const outages = [faults.rejects, faults.throws, faults.rejectsAfter, faults.answers(undefined)].map(faulty)
        await crowd(sessions, async ask => {
          for (const begin of outage === undefined ? outages : [...outages, outage]) {
            const undo = await begin()
            const replies = await ask(all).finally(undo)
            for (const reply of replies)
              assert.deepEqual(reply, { status: 503, body: 'ERR_SESSION_STORE', cookies: [] })
            for (const { status, body } of await ask(requests)) assert.deepEqual([status, body], [200, 'ada'])
          }
        })
      })

    it('of many gets in one turn each keeps its own storeTimeout: who waits longer gets its session', async () => {
      const { sessions, manager, store, user } = await setUp()
      const held = await Promise.all(times(10).map(() => sessions.create({ user })))
      const hasty = manager({ storeTimeout: '50ms' })
      let answerAll = () => {}
      const gate = new Promise<void>(resolve => {
        answerAll = resolve
      })
      store.every('read', async proceed => {
        const answer = await proceed()
        await gate
        return answer
      })
      const gets = held.map(({ secret }) => [sessions.get(secret), hasty.get(secret)] as const)
      for (const outcome of await Promise.allSettled(gets.map(([, get]) => get)))
        assert.ok(outcome.status === 'rejected' && outcome.reason instanceof SessionStoreError)
      answerAll()
      for (const session of await Promise.all(gets.map(([get]) => get))) assert.equal(session?.user?.name, 'ada')
    })

    it('absent, expired and malformed are null, not an outage', async () => {
      const { sessions, clock, user } = await setUp()
      const expired = await sessions.create({ user })
      clock.advance(31 * MINUTE)
      for (const id of [expired.secret, 'A'.repeat(43), 'short', '', 'x'.repeat(100_000), expired.key as string, '\0'])
        assert.equal(await sessions.get(id as SessionId), null)
    })

    it('a touch that fails is an event, not a failed get', async () => {
      const { sessions, store, clock, events, user } = await setUp()
      const session = await sessions.create({ user })
      clock.advance(10 * MINUTE)
      store.next('touch', faults.rejects)
      assert.equal((await sessions.get(session.secret))?.key, session.key)
      assert.equal(events.at(-1).type, 'store-error')
      clock.advance(10 * MINUTE)
      assert.equal((await sessions.get(session.secret))?.seenAt, clock())
    })
  })
}
