import assert from 'node:assert/strict'
import type { Session, SessionRef, SessionStoreError } from 'coatcheck'
import { describe, it } from 'vitest'
import { faults } from '../support/barrier-store.ts'
import { type Data, type GuaranteeKit, type SetUp, times } from '../support/guarantee-kit.ts'

export function noLostUpdate({ setUp, atEveryPoint }: GuaranteeKit): void {
  describe('G2: no lost update', () => {
    it('100 concurrent increments in one process give 100', async () => {
      const { sessions } = await setUp()
      const session = await sessions.create({ data: { count: 0 } })
      await Promise.all(
        times(100).map(() =>
          sessions.update(session, draft => {
            draft.count = (draft.count as number) + 1
          }),
        ),
      )
      assert.equal((await sessions.get(session))?.data.count, 100)
    })

    it('100 concurrent increments in four processes give 100', async () => {
      const { sessions, manager } = await setUp()
      const nodes = [sessions, manager(), manager(), manager()]
      const session = await sessions.create({ data: { count: 0 } })
      await Promise.all(
        times(100).map(index =>
          nodes[index % 4]!.update(session, draft => {
            draft.count = (draft.count as number) + 1
          }),
        ),
      )
      assert.equal((await sessions.get(session))?.data.count, 100)
    })

    it('patches of different keys from two processes both win', async () => {
      const { sessions, manager } = await setUp()
      const other = manager()
      const session = await sessions.create({ data: { kept: 1 } })
      await Promise.all([sessions.update(session, { a: 1 }), other.update(session, { b: 2 })])
      assert.deepEqual({ ...(await sessions.get(session))?.data }, { kept: 1, a: 1, b: 2 })
    })

    it('of 20 takers in two processes one gets the value', async () => {
      const { sessions, manager } = await setUp()
      const other = manager()
      const session = await sessions.create({ data: { flash: 'saved', kept: 1 } })
      const taken = await Promise.all(times(20).map(index => (index % 2 ? sessions : other).take(session, 'flash')))
      assert.deepEqual(
        taken.filter(value => value !== undefined),
        ['saved'],
      )
      assert.deepEqual({ ...(await sessions.get(session))?.data }, { kept: 1 })
    })

    const moves = {
      regenerate: ({ sessions }: SetUp, current: SessionRef<Data, 'bigint'>) => sessions.regenerate(current),
      rotate: ({ sessions }: SetUp, current: SessionRef<Data, 'bigint'>) =>
        sessions.regenerate(current, { grace: '1m' }),
      'a login that carries the data': ({ sessions, user }: SetUp, current: SessionRef<Data, 'bigint'>) =>
        sessions.logIn(current, { user, data: before => before }),
    }
    const owners = {
      'an anonymous session': (_: SetUp) => undefined,
      'a session of the same user': ({ user }: SetUp) => user,
    }
    for (const [name, move] of Object.entries(moves))
      for (const [whose, ownerOf] of Object.entries(owners))
        for (const [how, current] of [
          ['by session', (session: Session<Data, 'bigint'>) => session],
          ['by ID', (session: Session<Data, 'bigint'>) => session.secret],
        ] as const) {
          const prepare = async (at: SetUp): Promise<Session<Data, 'bigint'>> => {
            const user = ownerOf(at)
            const data = { cart: 'book' }
            return user ? at.sessions.create({ user, data }) : at.sessions.create({ data })
          }
          const save = (at: SetUp, session: Session<Data, 'bigint'>) => at.manager().update(session, { saved: 1 })
          type Moved = Session<Data, 'bigint'> | null

          it(`a save in ${whose} that was acknowledged during ${name} ${how} is not lost`, async () => {
            const answers: string[] = []
            await atEveryPoint(
              {},
              async at => ({ session: await prepare(at), saved: null as Moved }),
              (at, { session }): Promise<Moved> => move(at, current(session)),
              async (at, context) => {
                context.saved = await save(at, context.session)
              },
              async ({ sessions }, { saved }, outcome, where) => {
                assert.equal(outcome.status, 'fulfilled', where)
                const moved = (outcome as PromiseFulfilledResult<Moved>).value
                const now = await sessions.get(moved)
                assert.equal(now?.secret, moved?.secret, where)
                assert.deepEqual({ ...now?.data }, { cart: 'book', ...(saved && { saved: 1 }) }, where)
                answers.push(saved ? 'acknowledged' : 'gone')
              },
            )
            // Before the new ID the save has to be possible; after it only where the old one still leads there.
            assert.equal(answers[0], 'acknowledged')
            assert.equal(answers.at(-1), name === 'rotate' ? 'acknowledged' : 'gone')
          })

          it(`${name} ${how} during a save in ${whose} loses nothing that was acknowledged`, () =>
            atEveryPoint(
              {},
              async at => ({ session: await prepare(at), moved: null as Moved }),
              (at, { session }) => save(at, session),
              async (at, context) => {
                context.moved = await move(at, current(context.session))
              },
              async ({ sessions }, { moved }, outcome, where) => {
                assert.equal(outcome.status, 'fulfilled', where)
                const acknowledged = (outcome as PromiseFulfilledResult<Moved>).value !== null
                const now = await sessions.get(moved)
                assert.deepEqual({ ...now?.data }, { cart: 'book', ...(acknowledged && { saved: 1 }) }, where)
                if (where.startsWith('after update')) assert.ok(acknowledged, where)
              },
            ))
        }

    it('a new ID that waits behind a save of its own process has what was saved', async () => {
      for (const move of Object.values(moves)) {
        const at = await setUp()
        const session = await at.sessions.create({ data: { cart: 'book' } })
        const [saved, moved] = await Promise.all([at.sessions.update(session, { saved: 1 }), move(at, session)])
        assert.notEqual(saved, null)
        assert.deepEqual({ ...(await at.sessions.get(moved))?.data }, { cart: 'book', saved: 1 })
      }
    })

    it('a login beside a renewal carries the data over all the same', () =>
      atEveryPoint(
        {},
        ({ sessions }) => sessions.create({ data: { cart: 'book' } }),
        ({ sessions, user }, session) => sessions.logIn(session, { user, data: before => before }),
        (at, session) => at.manager().regenerate(session.secret, { grace: '1m' }),
        async ({ sessions }, _session, outcome, where) => {
          assert.equal(outcome.status, 'fulfilled', where)
          const login = (outcome as PromiseFulfilledResult<any>).value
          if (!where.startsWith('after')) assert.equal(login.data.cart, 'book', where)
          assert.equal((await sessions.get(login))?.user?.name, 'ada', where)
        },
      ))

    it('an increment whose answer was lost is reported as unknown, and never counted twice', async () => {
      const { sessions, store, manager } = await setUp()
      const session = await sessions.create({ data: { count: 0 } })
      store.next('update', faults.rejectsAfter)
      const increment = sessions.update(session, draft => {
        draft.count = (draft.count as number) + 1
      })
      await assert.rejects(increment, (error: SessionStoreError) => error.outcome === 'unknown')
      assert.equal((await manager().get(session))?.data.count, 1)
    })
  })
}
