import { setImmediate as endOfTurn } from 'node:timers/promises'
import { connectStore } from 'coatcheck/connect'
import { expect, it } from 'vitest'
import { OldConnectStore } from '../support/connect/old-store.ts'
import { makeStore, sidOf, userOf } from './service.ts'

it('One warning says that a cookie outlives the idle time of its session, and what to do', async () => {
  const warnings: string[] = []
  const note = ({ message }: Error) => void warnings.push(message)
  process.on('warning', note)
  const { store } = makeStore({ idleTimeout: '30m' })
  await store.set(sidOf('a'), { cookie: { originalMaxAge: 1_800_000 } })
  await store.set(sidOf('b'), { cookie: { originalMaxAge: null } })
  await endOfTurn()
  expect(warnings).toEqual([])
  for (const name of ['c', 'd']) await store.set(sidOf(name), { cookie: { originalMaxAge: 86_400_000 } })
  await endOfTurn()
  process.off('warning', note)
  expect(warnings).toEqual([
    'connectStore: a cookie whose maxAge is 86400000 ms outlives idleTimeout, 1800000 ms, which ends the session first: raise idleTimeout and absoluteTimeout of the SessionManager, or lower maxAge',
  ])
})

it('One warning says that nobody is found under the key of Passport, and one why old sessions do not move', async () => {
  const warnings: (string | undefined)[] = []
  const note = ({ code }: Error & { code?: string }) => void warnings.push(code)
  process.on('warning', note)
  const { sessions } = makeStore()
  const store = connectStore(sessions)
  const cookie = { originalMaxAge: null }
  for (const passport of [{}, { user: null }, { user: 42 }, '', undefined])
    await store.set(sidOf('p'), { cookie, passport })
  await endOfTurn()
  expect(warnings).toEqual([])
  for (const passport of [{ account: 42 }, true, { account: 43 }]) await store.set(sidOf('q'), { cookie, passport })
  const asked = makeStore({ getPasswordVersion: () => 0 })
  const oldStore = new OldConnectStore()
  for (const name of ['r', 's']) {
    oldStore.records.set(sidOf(name), JSON.stringify({ cookie, user: '42' }))
    await connectStore(asked.sessions, { userOf: userOf as never, oldStore }).get(sidOf(name))
  }
  await endOfTurn()
  process.off('warning', note)
  expect(warnings).toEqual(['COATCHECK_UNKNOWN_PASSPORT', 'COATCHECK_NO_PASSWORD_VERSION'])
})
