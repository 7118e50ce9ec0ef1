// The middleware while a store is down: an error for `next`, which no server has to wait for. Express 4 and Connect drop the
// promise of a middleware, so that one which rejects ends the process.
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { nodeVisits } from 'coatcheck/node'
import express from 'express'
import { afterEach, describe, expect, it } from 'vitest'
import { faults } from '../support/barrier-store.ts'
import { ada, OLD, replacement, SID } from '../support/old-sessions.ts'

const open: (() => unknown)[] = []
afterEach(async () => {
  while (open.length > 0) await open.pop()!()
})

function moving() {
  const world = replacement()
  open.push(world.close)
  world.old.put(SID, ada)
  const { sessions, importer } = world.node()
  const visits = nodeVisits(sessions, { cookie: { secure: false } })
  return { ...world, visits, middleware: importer.middleware(visits) }
}
type World = ReturnType<typeof moving>

const OUTAGES: [string, (world: World) => void][] = [
  ['the old store', ({ old }) => (old.fault = () => new Error('ECONNREFUSED'))],
  ['our store', ({ store }) => store.every('read', faults.rejects)],
]
const recover = ({ old, store }: World) => {
  old.fault = null
  store.every('read', null)
}

describe.each(OUTAGES)('while %s is down', (_, fail) => {
  it('Express answers 503 by its error handler, and goes on afterwards', async () => {
    const world = moving()
    const app = express().use(world.middleware)
    app.get('/', async (request, response) => {
      response.send((await world.visits.of(request, response).get())?.user?.name)
    })
    app.use(((error, _request, response, _next) => {
      response.status(error.status ?? 500).send('Please try again later.')
    }) satisfies express.ErrorRequestHandler)
    const server = app.listen(0, '127.0.0.1')
    await once(server, 'listening')
    open.push(() => server.close())
    const get = async () => {
      const { port } = server.address() as AddressInfo
      const response = await fetch(`http://127.0.0.1:${port}/`, { headers: { cookie: OLD, connection: 'close' } })
      return [response.status, await response.text(), response.headers.getSetCookie().length]
    }
    fail(world)
    expect(await get()).toEqual([503, 'Please try again later.', 0])
    recover(world)
    expect(await get()).toEqual([200, 'ada', 1])
  })

  it('a server that waits for no promise, as Express 4, hears of it by next', async () => {
    const world = moving()
    const request = () => ({ headers: { cookie: OLD } })
    const ask = () =>
      new Promise(next => {
        const answer: unknown = world.middleware(request(), { appendHeader: () => {} }, next)
        // Nothing that could reject.
        expect(answer).toBeUndefined()
      })
    fail(world)
    expect(await ask()).toMatchObject({ status: 503 })
  })
})
