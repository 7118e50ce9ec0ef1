import { scrypt } from 'node:crypto'
import { expect, it, vi } from 'vitest'
import { openUsers } from '../../../examples/server/users.mjs'

vi.mock('node:crypto', async load => {
  const crypto = await load<typeof import('node:crypto')>()
  return { ...crypto, scrypt: vi.fn(crypto.scrypt) }
})

it('an unknown name costs the same work as a wrong password, so that no time tells which names exist', async () => {
  const users = await openUsers()
  const workFor = async (name: string) => {
    vi.mocked(scrypt).mockClear()
    expect(await users.authenticate(name, 'wrong password')).toBeNull()
    return vi.mocked(scrypt).mock.calls.map(([password, , length, cost]) => ({ password, length, cost }))
  }
  const known = await workFor('ada')
  expect(known).toHaveLength(1)
  expect(await workFor('unknown')).toEqual(known)
})
