import { Console } from 'node:console'
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { Writable } from 'node:stream'
import { SessionManager } from 'coatcheck'
import { MemoryStore } from 'coatcheck/stores/memory'
import { expect, it } from 'vitest'
import { BarrierStore, faults } from '../support/barrier-store.ts'
import { failuresOf, leaked, PRIVATE } from '../support/scan.ts'

const secrets = new Set<string>()
const written: string[] = []
const keep = <S extends { secret: string; csrfToken: string } | null>(session: S): S => {
  if (session) secrets.add(session.secret).add(session.csrfToken)
  return session
}
const keepToken = (token: string) => {
  for (const part of token.split('.')) secrets.add(part)
  return token
}

const output = new Console(
  new Writable({
    write(chunk, _encoding, done) {
      written.push(String(chunk))
      done()
    },
  }),
)

it('the scan sees a secret, and a part of one, wherever it is', () => {
  const secret = 'abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQ'
  const error = new Error('x', { cause: { name: PRIVATE[0] } })
  for (const value of [{ a: [secret] }, new Error(secret), new Map([[1, secret]]), [secret.slice(11, 31)]])
    expect(leaked(value, [secret])).toBe('abcdef…')
  expect(leaked([secret.slice(0, 19), secret.slice(24)], [secret])).toBeNull()
  expect(leaked(error, PRIVATE)).toBe('Ada Pr…')
})

it('no secret is seen in sessions, errors, events, the diagnostics channel, store calls or output', async () => {
  const store = BarrierStore.over(new MemoryStore())
  const events: unknown[] = []
  const published: unknown[] = []
  const errors: unknown[] = []
  const onMessage = (message: unknown) => published.push(message)
  subscribe('coatcheck', onMessage)
  const sessions = new SessionManager({
    store,
    rememberFor: '30d',
    sweepInterval: false,
    limit: { max: 2 },
    onEvent: event => events.push(event),
  })
  const user = { id: 1, name: 'ada' }
  const seen: unknown[] = []
  const anonymous = keep(await sessions.create({ data: { cart: 1 } }))
  const login = keep(await sessions.logIn(anonymous.secret, { user, data: before => before }))
  const rotated = keep((await sessions.regenerate(login, { grace: '1m' }))!)
  const followed = keep((await sessions.get(login.secret))!)
  const updated = keep((await sessions.update(rotated, { a: 1 }))!)
  const token = keepToken(await sessions.issueRememberToken(updated as typeof login))
  const recalled = (await sessions.redeemRememberToken(token))!
  keep(recalled.session)
  keepToken(recalled.token!)
  seen.push(anonymous, login, rotated, followed, updated, recalled.session, await sessions.list(1))
  keep(await sessions.create({ user }))

  for (const fault of [faults.rejects, faults.throws])
    for (const call of [
      () => sessions.get(updated.secret),
      () => sessions.update(updated, { b: 1 }),
      () => sessions.regenerate(updated.secret),
      () => sessions.destroy(updated.secret),
      () => sessions.redeemRememberToken(recalled.token!),
      () => sessions.invalidateUser(1, { except: updated }),
    ]) {
      store.next('any', fault)
      await call().then(
        () => expect.unreachable(),
        (error: unknown) => errors.push(error),
      )
    }
  for (const wrong of [
    () => sessions.invalidateUser(1, { except: updated.secret as never }),
    () => sessions.get({ secret: updated.secret } as never),
    () => sessions.update({ ...updated } as never, { a: 1 }),
    () => sessions.update(updated.secret as never, { a: 1 }),
    () => sessions.create(updated.secret as never),
    () => sessions.logIn(updated, updated.secret as never),
    () => sessions.issueRememberToken(updated.secret as never),
    () => sessions.isFresh(updated, updated.secret as never),
  ])
    try {
      await wrong()
      errors.push('no error')
    } catch (error) {
      errors.push(error)
    }
  expect(errors).not.toContain('no error')
  for (const value of [...seen, ...errors, ...events]) {
    output.log(value)
    output.log('%s %o', value, value)
    output.dir(value, { depth: 9, showHidden: true })
  }
  await sessions.destroy(updated.secret)
  await sessions.invalidateUser(1)

  expect(secrets.size).toBeGreaterThan(10)
  expect(events.length).toBeGreaterThan(15)
  expect(published.filter(event => events.includes(event as never))).toEqual(events)
  expect(written.join('')).toContain(updated.key)
  for (const [name, value] of Object.entries({
    seen,
    errors,
    events,
    published,
    calls: store.calls,
    written,
    sessions,
    login,
  }))
    expect([name, leaked(value, secrets)]).toEqual([name, null])
  for (const value of [...seen, ...errors, ...events]) expect(leaked(value, secrets)).toBeNull()
  unsubscribe('coatcheck', onMessage)
})

it('no name and no data is seen in errors, events and the diagnostics channel where a store fails', async () => {
  // The channel is the thread's: a manager of another test may still tell something there.
  const published: unknown[] = []
  const onMessage = (message: unknown) => published.push(message)
  for (const fault of [faults.rejects, faults.throws, faults.hang]) {
    const store = BarrierStore.over(new MemoryStore())
    subscribe('coatcheck', onMessage)
    const { errors, events } = await failuresOf(
      store,
      () => {
        for (const verb of ['create', 'read', 'update', 'replace', 'delete', 'deleteUser', 'listUser'] as const)
          store.every(verb, fault)
      },
      '20ms',
    )
    unsubscribe('coatcheck', onMessage)
    expect(Object.keys(errors)).toHaveLength(15)
    expect(events.length).toBeGreaterThan(15)
    expect(published.filter(event => events.includes(event as never))).toEqual(events)
    expect(leaked([errors, events, published], PRIVATE)).toBeNull()
    published.length = 0
    for (const value of [...Object.values(errors), ...events]) expect(leaked(value, PRIVATE)).toBeNull()
  }
})
