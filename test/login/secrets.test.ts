// No secret shows in what a visit throws, prints or tells.
import { inspect } from 'node:util'
import { expect, it } from 'vitest'
import { ada, loggedIn, makeSessions, visitOf } from '../support/edge-service.ts'

it('no secret shows in what a visit throws, prints or tells', async () => {
  const shown: string[] = []
  const show = (value: unknown) =>
    shown.push(
      inspect(value, { depth: 9, showHidden: true }),
      JSON.stringify(value, (_, item) => (typeof item === 'bigint' ? String(item) : item)) ?? '',
    )
  const made = makeSessions({ rememberFor: '30d', onEvent: show })
  const { sessions } = made
  const { session, cookie, token } = await loggedIn(made, { ...ada, remember: true })
  const secrets = [cookie, token].map(pair => pair.split('=')[1]!)
  const both = [cookie, token]
  const visit = visitOf(sessions, both)
  const found = await visit.get()
  for (const value of [visit, found, session, sessions, { ...found }]) show(value)
  for (const failure of [
    visit.checkCsrf(secrets[0]),
    visitOf(sessions, both, { header: name => (name === 'origin' ? 'https://evil.example' : null) }).get(),
    visitOf(sessions, [...both, 'session_id=x']).requireUser({ freshWithin: '1ms' }),
    visitOf(sessions, both, { secure: false }).logIn(ada),
    visitOf(sessions, both, { canSend: () => false }).logIn(ada),
  ])
    show(await failure.catch(error => error))
  await visit.logOut()
  for (const secret of secrets)
    for (const part of secret.split('.')) for (const text of shown) expect(text).not.toContain(part)
})
