import { expect, it } from 'vitest'
import { Client, PASSWORD } from '../support/example-service.ts'
import { runnable } from '../support/page-code.ts'
import { read } from '../support/pages.ts'
import { walk } from './walk.ts'

walk('the recipe for Nuxt', 'nuxt', {}, running => {
  const open = async (client: Client) => {
    const { status, text, headers } = await client.send('GET', '/', undefined, { Accept: 'text/html' })
    const names = headers.getSetCookie().map(line => line.split('=', 1)[0])
    return [status, /<p>([^<]*)<\/p>/.exec(text)?.[1], names.sort()]
  }

  it('renders a page that shows who is logged in, and sends the cookies of its visit', async () => {
    const ada = new Client(running().url)
    expect(await open(ada)).toEqual([200, 'Not logged in.', []])
    await ada.send('POST', '/login', { username: 'ada', password: PASSWORD, remember: true })
    expect(await open(ada)).toEqual([200, 'Logged in: ada', []])
    ada.cookies.delete('session_id') // the browser was closed
    expect(await open(ada)).toEqual([200, 'Logged in: ada', ['remember_token', 'session_id']])
    expect((await open(ada)).slice(0, 2)).toEqual([200, 'Logged in: ada'])
  })

  it('renders no page while the store is away, but a 503', async () => {
    const ada = new Client(running().url)
    await ada.send('POST', '/login', { username: 'ada', password: PASSWORD })
    running().control({ isDown: true })
    const { status, text, headers } = await ada.send('GET', '/', undefined, { Accept: 'text/html' })
    running().control({})
    expect([status, headers.getSetCookie()]).toEqual([503, []])
    expect(text).not.toMatch(/db\.internal|node_modules/)
    expect((await open(ada)).slice(0, 2)).toEqual([200, 'Logged in: ada'])
  })
})

it('the middleware of Nuxt gives no visit to an answer that a cache keeps for everybody', () => {
  const code = runnable(read('examples/nuxt/server/middleware/visit.ts')).replace('export default', 'return')
  // With the names that Nuxt imports by itself.
  const middleware = new Function('defineEventHandler', 'visits', code)((handler: unknown) => handler, {
    of: () => 'hers',
  })
  const context: { visit?: unknown; cache?: object } = {}
  middleware({ context, node: {} })
  expect(context.visit).toBe('hers')
  context.cache = {} // as Nitro has it under swr, isr and cache, and in a cached handler
  expect(() => context.visit).toThrow('no visit in a cached handler')
})
