// examples/connect: the programs of docs/connect.md.
import { afterEach, expect, it } from 'vitest'
import { Client, runExample, type Service, startExample } from '../../support/example-service.ts'

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
  await one.send('POST', '/logout-everywhere')
  expect(await userOf(other)).toBeUndefined()
})

it('connect/moving.mjs moves a session of the store that was there before, and ends it', async () => {
  expect(await runExample('connect/moving.mjs', {})).toEqual({ output: 'moved, and logged out\n', code: 0 })
})
