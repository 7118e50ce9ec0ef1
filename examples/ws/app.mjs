// @ts-check
import { createServer } from 'node:http'
import { SessionManager } from 'coatcheck'
import { nodeVisits } from 'coatcheck/node'
import { MemoryStore } from 'coatcheck/stores/memory'
import { WebSocketServer } from 'ws'

/** The open sockets of each session. @type {Map<import('coatcheck').SessionKey, Set<import('ws').WebSocket>>} */
const socketsOf = new Map()
/** @param {import('coatcheck').SessionKey} key */
const closeSockets = key => {
  for (const socket of socketsOf.get(key) ?? []) socket.close(4401, 'logged out')
}

const sessions = new SessionManager({
  store: new MemoryStore(),
  // What ends in this process is known here at once; what ends elsewhere, or expires, at the next check.
  onEvent: event => {
    if (event.type === 'destroyed') closeSockets(event.key)
    if (event.type === 'regenerated') closeSockets(event.oldKey) // the browser connects again, with its new cookie
  },
})
const visits = nodeVisits(sessions)

const server = createServer(async (request, response) => {
  const visit = visits.of(request, response)
  try {
    if (request.method === 'POST' && request.url === '/login')
      await visit.logIn({ user: { id: 42n, name: 'ada' } }) // after the password was verified
    else if (request.method === 'POST' && request.url === '/logout') await visit.logOut()
    else await visit.requireUser()
    response.writeHead(204).end()
  } catch (caught) {
    const { status = 500, code = 'internal_error' } = /** @type {any} */ (caught)
    if (status >= 500) console.error(caught)
    response.writeHead(status, { 'Content-Type': 'application/json' }).end(JSON.stringify({ error: code }))
  }
})

const websockets = new WebSocketServer({ noServer: true, maxPayload: 16_384 })
server.on('upgrade', async (request, socket, head) => {
  socket.on('error', () => socket.destroy())
  try {
    // Without a response: another origin is refused, and no session can begin. Sockets connect again by themselves, and
    // live on while no person is there: they do not extend the session.
    const session = await visits.of(request).get({ touch: false })
    if (!session?.user) throw Object.assign(new Error('no user is logged in'), { status: 401 })
    const { user } = session
    websockets.handleUpgrade(request, socket, head, websocket => {
      keep(session, websocket)
      websocket.send(`Hello ${user.name}`)
      websocket.on('message', text => websocket.send(`You said ${text}`))
    })
  } catch (caught) {
    const { status = 500 } = /** @type {any} */ (caught)
    if (status >= 500) console.error(caught)
    socket.end(`HTTP/1.1 ${status} Refused\r\nConnection: close\r\nContent-Length: 0\r\n\r\n`)
  }
})

/**
 * Closes the socket once its session has ended.
 * @param {import('coatcheck').Session<any>} session
 * @param {import('ws').WebSocket} websocket
 */
function keep(session, websocket) {
  const sockets = socketsOf.get(session.key) ?? new Set()
  socketsOf.set(session.key, sockets.add(websocket))
  const check = setInterval(
    () => {
      // An outage is no logout: asked again later.
      sessions.get(session.secret, { touch: false }).then(
        live => live ?? websocket.close(4401, 'logged out'),
        error => console.error(error),
      )
    },
    Number(process.env.CHECK_EVERY ?? 60_000),
  )
  websocket.on('error', () => websocket.terminate())
  websocket.on('close', () => {
    clearInterval(check)
    sockets.delete(websocket)
    if (sockets.size === 0) socketsOf.delete(session.key)
  })
}

server.listen(process.env.PORT ?? 3000)
