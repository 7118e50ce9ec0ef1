// The middleware while a store is down: an error for `next`, which no server has to wait for. Express 4 and Connect drop the
// promise of a middleware, so that one which rejects ends the process.
import { ServerResponse } from 'node:http'
import { nodeVisits } from 'coatcheck/node'
import { expect, it, onTestFinished } from 'vitest'
import { faults } from '../support/barrier-store.ts'
import { ada, OLD, replacement, SID } from '../support/old-sessions.ts'

function moving() {
  const world = replacement()
  onTestFinished(world.close)
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

it.each(OUTAGES)('while %s is down, the middleware hands a 503 to next, and goes on afterwards', async (_, fail) => {
  const world = moving()
  const request = { method: 'GET', headers: { host: 'localhost', cookie: OLD } } as never
  const response = new ServerResponse(request)
  const ask = () =>
    new Promise(next => {
      // Nothing that could reject.
      expect(world.middleware(request, response, next)).toBeUndefined()
    })
  fail(world)
  expect(await ask()).toMatchObject({ status: 503 })
  recover(world)
  expect(await ask()).toBeUndefined()
  expect((await world.visits.of(request, response).get())?.user?.name).toBe('ada')
})
