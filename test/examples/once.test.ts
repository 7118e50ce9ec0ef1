// examples/once.mjs: work that one request does for all. Over processes: test/libraries/refresh.test.ts.
import { setTimeout as sleep } from 'node:timers/promises'
import { SessionManager } from 'coatcheck'
import { MemoryStore } from 'coatcheck/stores/memory'
import { expect, it, vi } from 'vitest'

/** As a node of its own has it. */
const nodeOf = (name: string): Promise<typeof import('../../examples/once.mjs')> =>
  import(/* @vite-ignore */ `../../examples/once.mjs?node=${name}`)
const { leases, once } = await nodeOf('one')

async function begin<Data extends object>(more: Data) {
  const store = new MemoryStore()
  const sessions = new SessionManager({ store, initial: () => ({ ...leases(), ...more }) })
  return { store, sessions, session: await sessions.create({ user: { id: 1n, name: 'ada' } }) }
}

it('what comes after the end of its lease is dropped, and leaves the next lease alone', async () => {
  const [one, other] = [await nodeOf('one'), await nodeOf('other')]
  const { sessions, session } = await begin({ token: '' })
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
  const { sessions, session } = await begin({ done: 0 })
  const work = { due: () => true, work: async ({ done }: { done: number }) => ({ done: done + 1 }) }
  const answers = await Promise.all(Array.from({ length: 20 }, () => once(sessions, session, 'refresh', work)))
  expect(answers.map(answer => answer?.data.done)).toEqual(answers.map(() => 1))
  expect((await once(sessions, session, 'refresh', work))?.data).toEqual({ leases: {}, done: 2 })
})

it('a lease is over when a request has seen it for half as long again as it lasts, by its own clock, and no sooner', async () => {
  const [one, other] = [await nodeOf('first'), await nodeOf('second')]
  const { sessions, session } = await begin({ by: '' })
  const begun: string[] = []
  const work = (by: string, result: Promise<object>) => ({
    due: (data: { by: string }) => data.by === '',
    work: () => {
      begun.push(by)
      return result
    },
    lease: 1000,
    wait: 10_000,
  })
  const now = vi.spyOn(performance, 'now').mockReturnValue(0)
  void one.once(sessions, session, 'refresh', work('one', new Promise(() => {})))
  await vi.waitFor(() => expect(begun).toEqual(['one']))
  const done = other.once(sessions, session, 'refresh', work('other', Promise.resolve({ by: 'other' })))
  const looks = vi.spyOn(sessions, 'get')
  for (const time of [0, 1500]) {
    now.mockReturnValue(time)
    looks.mockClear()
    await vi.waitFor(() => expect(looks.mock.calls.length).toBeGreaterThan(1))
    expect(begun).toEqual(['one'])
  }
  now.mockReturnValue(1501)
  expect((await done)?.data.by).toBe('other')
})

it('what the provider gave is written though the store fails for a moment: it gives it once', async () => {
  const { store, sessions, session } = await begin({ done: 0 })
  const update = store.update.bind(store)
  let failures = 0
  const work = {
    due: ({ done }: { done: number }) => done === 0,
    work: async () => {
      failures = 1
      return { done: 1 }
    },
  }
  store.update = async (...args) => {
    if (failures-- > 0) throw new Error('away for a moment')
    return update(...args)
  }
  expect((await once(sessions, session, 'refresh', work))?.data).toEqual({ leases: {}, done: 1 })
})
