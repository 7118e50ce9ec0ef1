// zone.js puts another Promise in place of the global one, and what an async function answers is no instance of that.
import { MemoryStore } from 'coatcheck/stores/memory'
import { expect, it, vi } from 'vitest'
import { barrierManagers } from '../support/barrier-managers.ts'
import { managerCalls } from '../support/manager-calls.ts'

it.each(managerCalls())('%s works where another Promise is global', async (_, _verb, run) => {
  const { sessions } = barrierManagers(new MemoryStore(), { rememberFor: '30d', getPasswordVersion: async () => 1 })
  const user = { id: 1, name: 'ada', passwordVersion: 1 }
  const session = await sessions.create({ user, data: { flash: 'hello' } })
  const token = await sessions.issueRememberToken(session)
  vi.stubGlobal('Promise', class extends Promise<unknown> {})
  expect(await run(sessions, { session, token, login: { user } })).not.toBeNull()
})

it('a login in place of an ID works where another Promise is global', async () => {
  const { sessions } = barrierManagers(new MemoryStore(), { getPasswordVersion: async () => 1 })
  const user = { id: 1, name: 'ada', passwordVersion: 1 }
  const session = await sessions.create({ user })
  vi.stubGlobal('Promise', class extends Promise<unknown> {})
  expect((await sessions.logIn(session.secret, { user })).user).toMatchObject({ id: 1n, name: 'ada' })
})
