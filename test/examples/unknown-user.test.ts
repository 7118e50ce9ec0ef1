import crypto from 'node:crypto'
import { syncBuiltinESMExports } from 'node:module'
import { afterEach, expect, it, vi } from 'vitest'
import { openUsers } from '../../examples/server/users.mjs'
import { CHEAP } from '../support/example-service.ts'

afterEach(() => {
  vi.restoreAllMocks()
  syncBuiltinESMExports()
})

it('an unknown name costs the same work as a wrong password, so that no time tells which names exist', async () => {
  const users = await openUsers(CHEAP)
  // No mock of the module: another file of this thread may have loaded the users before.
  const scrypt = vi.spyOn(crypto, 'scrypt')
  syncBuiltinESMExports()
  const workFor = async (name: string) => {
    scrypt.mockClear()
    expect(await users.authenticate(name, 'wrong password')).toBeNull()
    return scrypt.mock.calls.map(([password, , length, cost]) => ({ password, length, cost }))
  }
  const known = await workFor('ada')
  expect(known).toEqual([{ password: 'wrong password', length: 32, cost: CHEAP }])
  expect(await workFor('unknown')).toEqual(known)
})
