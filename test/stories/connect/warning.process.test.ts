import { setImmediate as endOfTurn } from 'node:timers/promises'
import { expect, it } from 'vitest'
import { makeStore, sidOf } from './service.ts'

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
