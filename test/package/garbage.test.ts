// What a request held is garbage once it is answered. Where V8 keeps it for longer, each collection has to copy it: that
// cost more than the request itself. Measured in bytes, so that a busy machine changes nothing.
import { once } from 'node:events'
import { IncomingMessage, type RequestListener, ServerResponse } from 'node:http'
import { connect, Socket } from 'node:net'
import { setImmediate as endOfTurn } from 'node:timers/promises'
import { getHeapSpaceStatistics } from 'node:v8'
import { SessionManager } from 'coatcheck'
import { fetchVisits } from 'coatcheck/fetch'
import { nodeVisits } from 'coatcheck/node'
import { MemoryStore } from 'coatcheck/stores/memory'
import { describe, expect, it, onTestFinished } from 'vitest'
import { collectGarbage } from '../support/collect-garbage.ts'
import { listening } from '../support/listening.ts'

/** What each request carries beside its own objects: 8 KiB. */
const ballast = () => ({ ballast: new Array(1024).fill(0) })
/** What may be left of each, in bytes: the Request and Response of Node.js alone leave 700. */
const LITTLE = 2048

/** Bytes of the young heap that a minor collection leaves, per request. */
async function left(requests: number): Promise<number> {
  await endOfTurn()
  collectGarbage({ type: 'minor' })
  return getHeapSpaceStatistics().find(space => space.space_name === 'new_space')!.space_used_size / requests
}

/** A store that answers at the end of the turn, so that many requests wait at once, as on a database. */
class LaterStore extends MemoryStore {
  override async read(...call: Parameters<MemoryStore['read']>) {
    await endOfTurn()
    return super.read(...call)
  }
}

async function setUp(store: MemoryStore) {
  const sessions = new SessionManager({ store })
  const { secret } = await sessions.create({ user: { id: 1n, name: 'Ada' } })
  const cookie = `session_id=${secret}`
  const visits = nodeVisits(sessions)
  const fetching = fetchVisits(sessions)
  const exchange = () => {
    const request = new IncomingMessage(new Socket())
    Object.assign(request, { method: 'GET', headers: { cookie, host: 'localhost' }, ...ballast() })
    return { request, response: new ServerResponse(request) }
  }
  const listener: RequestListener = async (request, response) => {
    const session = await visits.of(request, Object.assign(response, ballast())).get()
    response.writeHead(200, { 'Content-Length': 3 }).end(session?.user?.name)
  }
  const requests = {
    async nodeVisits() {
      const { request, response } = exchange()
      const session = await visits.of(request, response).get()
      response.writeHead(200).end(session?.user?.name)
    },
    async fetchVisits() {
      const request = Object.assign(new Request('https://localhost/profile', { headers: { cookie } }), ballast())
      await fetching.handle(request, async visit => new Response((await visit.get())?.user?.name))
    },
  }
  return { requests, listener, cookie }
}

/** Sends a GET over each of 64 connections, and waits for their answers. */
async function openConnections(listener: RequestListener, cookie: string) {
  const { port, close } = await listening(listener)
  const sockets = await Promise.all(
    Array.from({ length: 64 }, async () => {
      const socket = connect(port, '127.0.0.1')
      await once(socket, 'connect')
      return socket
    }),
  )
  onTestFinished(() => void close())
  const head = `GET / HTTP/1.1\r\nHost: localhost\r\nCookie: ${cookie}\r\n\r\n`
  return () =>
    Promise.all(
      sockets.map(async socket => {
        socket.write(head)
        await once(socket, 'data')
      }),
    )
}

const EDGES = ['nodeVisits', 'fetchVisits'] as const

describe.each([
  ['at once', MemoryStore],
  ['later', LaterStore],
])('a request whose session the store answers %s', (_, Store) => {
  it.each(EDGES)('is garbage after a full collection, in %s', async edge => {
    const { requests } = await setUp(new Store())
    const burst = () => Promise.all(Array.from({ length: 64 }, requests[edge]))
    for (let round = 0; round < 20; round += 1) await burst()
    await endOfTurn()
    collectGarbage()
    for (let round = 0; round < 8; round += 1) await burst()
    expect(await left(512)).toBeLessThan(LITTLE)
  })

  it.each(EDGES)('is garbage after minor collections that met many of its kind waiting, in %s', async edge => {
    const { requests } = await setUp(new Store())
    for (let round = 0; round < 50; round += 1) {
      const burst = Promise.all(Array.from({ length: 256 }, requests[edge]))
      collectGarbage({ type: 'minor' })
      await burst
    }
    await endOfTurn()
    collectGarbage({ type: 'minor' })
    for (let round = 0; round < 8; round += 1) await Promise.all(Array.from({ length: 64 }, requests[edge]))
    expect(await left(512)).toBeLessThan(LITTLE)
  })

  it('is garbage after a full collection, at a server of node:http', async () => {
    const { listener, cookie } = await setUp(new Store())
    const burst = await openConnections(listener, cookie)
    for (let round = 0; round < 20; round += 1) await burst()
    collectGarbage()
    for (let round = 0; round < 8; round += 1) await burst()
    expect(await left(512)).toBeLessThan(LITTLE)
  })
})
