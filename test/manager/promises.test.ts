// A login passes few functions: each promise on its way is one that a reader has to follow.
import { createHook } from 'node:async_hooks'
import { SessionManager } from 'coatcheck'
import { MemoryStore } from 'coatcheck/stores/memory'
import { expect, it } from 'vitest'

async function promisesOf(run: () => Promise<unknown>): Promise<number> {
  let count = 0
  const hook = createHook({
    init(_id, type) {
      if (type === 'PROMISE') count += 1
    },
  })
  hook.enable()
  const running = run()
  await running
  hook.disable()
  return count
}

it('a login makes at most 18 promises in memory, also in place of another session', async () => {
  const sessions = new SessionManager({ store: new MemoryStore(), sweepInterval: false })
  const user = { id: 1, name: 'ada' }
  const first = await sessions.logIn(null, { user })
  expect(await promisesOf(() => sessions.logIn(null, { user }))).toBeLessThanOrEqual(12)
  expect(await promisesOf(() => sessions.logIn(first, { user }))).toBeLessThanOrEqual(18)
})
