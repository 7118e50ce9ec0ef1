// examples/connect: the programs of docs/connect.md.
import { afterEach, expect, it } from 'vitest'
import { Client, runExample, type Service, startExample } from '../support/example-service.ts'

let service: Service | undefined
afterEach(async () => {
  await service?.stop()
  service = undefined
})

it.each(['express', 'fastify', 'koa'])('connect/%s.mjs logs in, logs out, and logs out everywhere', async name => {
  service = await startExample(`connect/${name}.mjs`)
  const [one, other] = [new Client(service.url), new Client(service.url)]
  const userOf = async (client: Client) => (await client.send('GET', '/')).body?.userId
  for (const client of [one, other]) {
    expect((await client.send('POST', '/login')).status).toBe(200)
    expect(await userOf(client)).toBe('u_42')
  }
  const { cookie } = one
  await one.send('POST', '/logout')
  expect(await userOf(one)).toBeUndefined()
  expect((await one.send('GET', '/', undefined, { Cookie: cookie })).body?.userId).toBeUndefined()
  expect(await userOf(other)).toBe('u_42')
  // Nobody logs somebody else out, and no link logs anybody out.
  expect((await one.send('POST', '/logout-everywhere')).status).toBe(401)
  await other.send('GET', '/logout-everywhere')
  expect(await userOf(other)).toBe('u_42')
  await other.send('POST', '/logout-everywhere')
  expect(await userOf(other)).toBeUndefined()
})

it('connect/moving.mjs moves a session of the store that was there before, and ends it', async () => {
  expect(await runExample('connect/moving.mjs', {})).toEqual({ output: 'moved, and logged out\n', code: 0 })
})

it('connect/passport.mjs has a token for its form, knows its users, and lets no cache keep what they see', async () => {
  service = await startExample('connect/passport.mjs')
  const [one, other] = [new Client(service.url), new Client(service.url)]
  const form = (client: Client, path: string, text: string) =>
    client.send('POST', path, text, { 'Content-Type': 'application/x-www-form-urlencoded' })
  const seenBy = async (client: Client) => (await client.send('GET', '/')).body
  for (const client of [one, other])
    expect((await form(client, '/login', 'username=ada&password=secret')).status).toBe(200)
  const { user, csrf } = await seenBy(one)
  expect(user).toMatchObject({ id: 'u_42', username: 'ada' })
  const { headers } = await one.send('GET', '/')
  expect([headers.get('cache-control'), headers.get('vary')]).toEqual(['no-store', 'Cookie'])
  expect((await form(one, '/transfer', `csrf=${csrf}`)).status).toBe(200)
  for (const wrong of [
    '',
    'csrf=',
    'csrf=undefined',
    `csrf=${(await seenBy(other)).csrf}`,
    `csrf=${'ü'.repeat(csrf.length)}`,
  ])
    expect((await form(one, '/transfer', wrong)).status).toBe(403)
  expect((await form(new Client(service.url), '/transfer', 'csrf=undefined')).status).toBe(403)
  await one.send('POST', '/logout')
  expect((await seenBy(one)).user).toBe(null)
  expect((await other.send('POST', '/logout-everywhere')).body).toBe(1)
  expect((await seenBy(other)).user).toBe(null)
})
