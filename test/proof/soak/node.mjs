// @ts-check
// One node of the soak: the endpoints, the store and the way to stop of the example service. Its own are the short lives
// of sessions, a counter in each session, and users whom all nodes ask the driver for, as of one table.
import { createServer } from 'node:http'
import { SessionError, SessionManager, stringify } from 'coatcheck'
import { nodeVisits } from 'coatcheck/node'
import { createApp } from '../../../examples/server/app.mjs'
import { untilStopped } from '../../../examples/server/stop.mjs'
import { openStore } from '../../../examples/server/store.mjs'

/** @typedef {import('../../../examples/server/users.mjs').User} User */

const { STORE_URL = '', IDLE = '', ABSOLUTE = '' } = process.env

const { store, close } = await openStore(STORE_URL)
let alarms = 0
const sessions = new SessionManager({
  store,
  initial: () => ({ label: '', count: 0 }),
  idleTimeout: `${Number(IDLE)}ms`,
  absoluteTimeout: `${Number(ABSOLUTE)}ms`,
  rememberFor: '2h',
  // Less than the time that a node which stops gives its requests.
  storeTimeout: '4s',
  sweepInterval: '2s',
  onEvent(event) {
    if (['remember-theft', 'corrupt-record', 'data-reset'].includes(event.type)) alarms++
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
    let session = await visit.get()
    if (request.method === 'POST') {
      await visit.requireUser()
      session = await visit.update(draft => {
        draft.count++
      })
    }
    answer(200, session?.user ? { name: session.user.name, count: session.data.count } : null)
  } catch (error) {
    if (!(error instanceof SessionError)) console.error(error)
    const { status, code } = error instanceof SessionError ? error : { status: 500, code: String(error) }
    answer(status, { error: code })
  }
}

const server = createServer((request, response) => {
  if (request.url === '/count') count(request, response)
  else app(request, response)
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
  const { heapUsed } = process.memoryUsage()
  process.send?.({ figures: { heapUsed, handles: process.getActiveResourcesInfo().length, alarms } })
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
process.disconnect()
