// Whose session a login begins: the user's ID, name and password version.
import { SessionManager } from 'coatcheck'
import { MemoryStore } from 'coatcheck/stores/memory'
import { expect, it } from 'vitest'
import { setUp, user } from '../support/manager-kit.ts'

it('an ID of another kind is refused by each method, and the store is not asked', async () => {
  const { sessions, store } = setUp()
  const id = 'ada' as never
  for (const attempt of [
    () => sessions.create({ user: { id, name: 'ada' } }),
    () => sessions.logIn(null, { user: { id, name: 'ada' } }),
    () => sessions.invalidateUser(id),
    () => sessions.list(id),
    () => sessions.revoke(id, 'k'),
  ])
    await expect(attempt()).rejects.toThrow(/^user ID: expected a bigint .*, got "ada"; for such IDs set userIds: /)
  expect(store.calls).toEqual([])
})

it('the text IDs 0, 00 and __proto__ are three users', async () => {
  const sessions = new SessionManager({ store: new MemoryStore(), userIds: 'string', sweepInterval: false })
  const ids = ['0', '00', '__proto__', 'constructor', ' 0']
  for (const id of ids) await sessions.create({ user: { id, name: '' } })
  for (const id of ids) {
    expect((await sessions.list(id)).map(({ user }) => user?.id)).toEqual([id])
    expect(await sessions.invalidateUser(id)).toBe(1)
  }
})

const NAME = 'user.name: expected text of at most 256 characters without NUL, got '
const VERSION = 'user.passwordVersion: expected a whole number from 0 to 4294967295, got '
const USER = 'user: expected { id, name, passwordVersion? }, got '
it.each<[string, unknown]>([
  [`${USER}undefined`, undefined],
  [`${USER}null`, null],
  [`${USER}42`, 42],
  [`${NAME}undefined`, { ...user, name: undefined }],
  [`${NAME}7`, { ...user, name: 7 }],
  [String.raw`${NAME}"a\u0000b"`, { ...user, name: 'a\0b' }],
  [String.raw`${NAME}"\ud800"`, { ...user, name: '\ud800' }],
  [`${NAME}"x x`, { ...user, name: 'x '.repeat(129) }],
  ...[-1, 1.5, '1', 4_294_967_296, Number.NaN].map((passwordVersion): [string, unknown] => [
    VERSION + JSON.stringify(passwordVersion).replace('null', 'NaN'),
    { ...user, passwordVersion },
  ]),
])('%s', async (message, wrong) => {
  const { sessions } = setUp()
  for (const attempt of [
    () => sessions.create({ user: wrong } as never),
    () => sessions.logIn(null, { user: wrong } as never),
  ]) {
    await expect(attempt()).rejects.toThrow(TypeError)
    await expect(attempt()).rejects.toThrow(message)
  }
})

it.each([null, 'ada', 42, true])('what is no login is refused, and the store is not asked: %j', async wrong => {
  const { sessions, store } = setUp()
  await expect(sessions.create(wrong as never)).rejects.toThrow(/^create: expected an object of options, got/)
  await expect(sessions.logIn(null, wrong as never)).rejects.toThrow('logIn: expected { user, data }')
  await expect(sessions.logIn(null, { data: {} } as never)).rejects.toThrow('logIn: expected { user, data }')
  expect(store.calls).toEqual([])
})

it('names and password versions at their limits are kept exactly', async () => {
  const { sessions } = setUp()
  for (const name of ['', ' ', 'x'.repeat(256), '__proto__', '😀', '\u0001<script>'])
    for (const passwordVersion of [null, undefined, 0, 1, 2 ** 32 - 1]) {
      const { secret } = await sessions.create({ user: { id: 7, name, passwordVersion } })
      const found = await sessions.get(secret)
      expect([found?.user?.name, found?.user?.passwordVersion]).toEqual([name, passwordVersion ?? null])
    }
})
