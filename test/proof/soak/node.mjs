// @ts-check
// One node of the soak: the endpoints, the store and the way to stop of the example service. Its own are the short lives
// of sessions, a counter in each session, and users whom both nodes ask the driver for, as of one table.
import { createServer } from 'node:http'
import { SessionError, SessionManager, stringify } from 'coatcheck'
import { nodeVisits } from 'coatcheck/node'
import { createApp } from '../../../examples/server/app.mjs'
import { untilStopped } from '../../../examples/server/stop.mjs'
import { openStore } from '../../../examples/server/store.mjs'

/** @typedef {import('../../../examples/server/users.mjs').User} User */

const { STORE_URL = '', IDLE = '30', ABSOLUTE = '180' } = process.env
const seconds = (/** @type {string} */ text) => /** @type {const} */ (`${Number(text)}s`)

const { store, close } = await openStore(STORE_URL)
const tally = { received: 0, answered: 0, abandoned: 0, thefts: 0, corrupt: 0, resets: 0 }
const sessions = new SessionManager({
  store,
  initial: () => ({ label: '', count: 0 }),
  idleTimeout: seconds(IDLE),
  absoluteTimeout: seconds(ABSOLUTE),
  rememberFor: '2h',
  // Less than the time that a node which stops gives its requests.
  storeTimeout: '4s',
  sweepInterval: '2s',
  onEvent(event) {
    if (event.type === 'remember-theft') tally.thefts++
    else if (event.type === 'corrupt-record') tally.corrupt++
    else if (event.type === 'data-reset') tally.resets++
  },
})

let asked = 0
/** @type {Map<number, (answer: any) => void>} */
const waiting = new Map()
/** @param {string} ask @param {unknown[]} args @returns {Promise<any>} */
const askDriver = (ask, ...args) =>
  new Promise(resolve => {
    waiting.set(++asked, resolve)
    process.send?.({ id: asked, ask, args })
  })
/** @param {any} row @returns {User | null} */
const userOf = row => row && { ...row, id: BigInt(row.id) }
/** @param {User} user */
const rowOf = user => ({ ...user, id: `${user.id}` })
const users = {
  /** @param {string} name @param {string} password */
  authenticate: async (name, password) => userOf(await askDriver('authenticate', name, password)),
  /** @param {Readonly<User>} user @param {string} password */
  changePassword: async (user, password) => userOf(await askDriver('changePassword', rowOf(user), password)),
  /** @param {Readonly<User>} user */
  othersEnded: user => void askDriver('othersEnded', rowOf(user)),
}

// What the example keeps in a session is a part of what this service keeps.
const app = createApp({ sessions: /** @type {any} */ (sessions), users })
const visits = nodeVisits(sessions)

/** @type {import('node:http').RequestListener} */
async function count(request, response) {
  const visit = visits.of(request, response)
  /** @param {number} status @param {unknown} value */
  const answer = (status, value) =>
    response.writeHead(status, { 'Content-Type': 'application/json' }).end(stringify(value))
  try {
    if (request.method === 'POST') {
      await visit.requireUser()
      const written = await visit.update(draft => {
        draft.count++
      })
      if (written === null) answer(401, { error: 'ended' })
      else answer(200, { name: written.user?.name, count: written.data.count })
    } else {
      const session = await visit.get()
      answer(200, session?.user ? { name: session.user.name, count: session.data.count } : null)
    }
  } catch (error) {
    if (!(error instanceof SessionError)) console.error(error)
    const { status, code } = error instanceof SessionError ? error : { status: 500, code: String(error) }
    answer(status, { error: code })
  }
}

/**
 * By connection, the responses that have not come to their end. One that waits for the response before it is told nothing
 * when the connection closes.
 * @type {WeakMap<import('node:net').Socket, Set<import('node:http').ServerResponse>>}
 */
const open = new WeakMap()
const server = createServer((request, response) => {
  tally.received++
  const responses = open.get(request.socket)?.add(response)
  response.once('close', () => {
    if (!responses?.delete(response)) return
    if (response.writableFinished) tally.answered++
    // Its client closed the connection first, or this node did.
    else tally.abandoned++
  })
  if (request.url === '/count') count(request, response)
  else app(request, response)
})

server.on('connection', socket => {
  const responses = new Set()
  open.set(socket, responses)
  socket.once('close', () =>
    setImmediate(() => {
      tally.abandoned += responses.size
      responses.clear()
    }),
  )
})

process.on('message', (/** @type {any} */ message) => {
  if (message.answerTo !== undefined) {
    waiting.get(message.answerTo)?.(message.answer)
    waiting.delete(message.answerTo)
    return
  }
  // What is garbage only after a second round, such as what finalizers hold, is not kept either.
  globalThis.gc?.()
  globalThis.gc?.()
  const { heapUsed, external, rss } = process.memoryUsage()
  const handles = process.getActiveResourcesInfo().length
  process.send?.({ figures: { heapUsed, external, rss, handles, ...tally } })
})

// Longer than clients keep them: a connection that a node closes for being idle could meet a request under way.
server.keepAliveTimeout = 120_000
const stopped = untilStopped(server)
server.listen(0, '127.0.0.1', () => {
  const address = /** @type {import('node:net').AddressInfo} */ (server.address())
  process.send?.({ port: address.port })
})
await stopped
await sessions.close()
await close()
process.send?.({ stopped: tally }, () => process.disconnect())
