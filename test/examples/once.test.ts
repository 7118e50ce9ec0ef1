// examples/once.mjs over a file that four processes share; the other databases are asked in once.engines.test.ts.
import { setTimeout as sleep } from 'node:timers/promises'
import { SessionManager } from 'coatcheck'
import { MemoryStore } from 'coatcheck/stores/memory'
import { expect, it } from 'vitest'
import { describeEngine } from '../support/services/engines.ts'
import { sqliteFile } from '../support/services/sqlite.ts'
import { refreshScenes } from './refresh/scenes.ts'

describeEngine('libsql', 'one refresh over four processes on SQLite', () => {
  refreshScenes(async () => {
    const { file, remove } = sqliteFile()
    return { url: `sqlite:${file}`, stop: remove }
  })
})

it('what comes after the end of its lease is dropped, and leaves the next lease alone', async () => {
  const [one, other] = (await Promise.all(
    ['one', 'other'].map(node => import(/* @vite-ignore */ `../../examples/once.mjs?node=${node}`)),
  )) as [typeof import('../../examples/once.mjs'), typeof import('../../examples/once.mjs')]
  const sessions = new SessionManager({
    store: new MemoryStore(),
    initial: () => ({ ...one.leases(), token: '' }),
  })
  const session = await sessions.create({ user: { id: 1n, name: 'ada' } })
  const due = ({ token }: { token: string }) => token === ''
  const running = ({ once }: typeof one, lease: number) => {
    let finish = (_: { token: string }) => {}
    let begin = () => {}
    const result = new Promise<{ token: string }>(resolve => {
      finish = resolve
    })
    const begun = new Promise<void>(resolve => {
      begin = resolve
    })
    const work = () => {
      begin()
      return result
    }
    return { begun, finish, done: once(sessions, session, 'refresh', { due, work, lease }) }
  }
  // The other one finds the lease over; to this one that of the other is not.
  const late = running(one, 600_000)
  await late.begun
  const next = running(other, 50)
  await next.begun
  const read = async () => (await sessions.get(session.secret))!.data
  const before = await read()
  expect(Object.keys(before.leases)).toEqual(['refresh'])
  late.finish({ token: 'late' })
  // It waits for the other one; a result that is written would end this wait.
  await Promise.race([late.done, sleep(100)])
  expect(await read()).toEqual(before)
  next.finish({ token: 'of the next' })
  const [first, second] = await Promise.all([late.done, next.done])
  expect([first?.data.token, second?.data.token]).toEqual(['of the next', 'of the next'])
  expect((await read()).leases).toEqual({})
})

it('what is still due when it has been done is done once for each request, not for ever', async () => {
  const { leases, once } = await import('../../examples/once.mjs')
  const sessions = new SessionManager({ store: new MemoryStore(), initial: () => ({ ...leases(), done: 0 }) })
  const session = await sessions.create({ user: { id: 1n, name: 'ada' } })
  const work = { due: () => true, work: async ({ done }: { done: number }) => ({ done: done + 1 }) }
  const answers = await Promise.all(Array.from({ length: 20 }, () => once(sessions, session, 'refresh', work)))
  expect(answers.map(answer => answer?.data.done)).toEqual(answers.map(() => 1))
  expect((await once(sessions, session, 'refresh', work))?.data).toEqual({ leases: {}, done: 2 })
})
