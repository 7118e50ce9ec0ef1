// @ts-check
import { createServer } from 'node:http'
import { SessionError, SessionManager } from 'coatcheck'
import { nodeVisits } from 'coatcheck/node'
import { MemoryStore } from 'coatcheck/stores/memory'
import { WebSocketServer } from 'ws'
import { watchSessions } from '../watch.mjs'

// With several nodes give it a channel, as in ../channels.mjs.
const { onEvent, start, watch } = watchSessions({ every: Number(process.env.CHECK_EVERY ?? 60_000) })
const sessions = new SessionManager({ store: new MemoryStore(), onEvent })
await start(sessions)
const visits = nodeVisits(sessions)

const server = createServer(async (request, response) => {
  try {
    const visit = visits.of(request, response)
    visit.checkOrigin() // what a page of another origin sends gets no further
    if (request.method === 'POST' && request.url === '/login')
      await visit.logIn({ user: { id: 42n, name: 'ada' } }) // after the password was verified
    else if (request.method === 'POST' && request.url === '/logout') await visit.logOut()
    else if (request.method === 'POST' && request.url === '/logout-everywhere') {
      await sessions.invalidateUser((await visit.requireUser()).user.id)
      await visit.logOut() // clears the cookie
    } else await visit.requireUser()
    response.writeHead(204).end()
  } catch (caught) {
    const { status, code } = caught instanceof SessionError ? caught : { status: 500, code: 'internal_error' }
    if (status >= 500) console.error(caught) // the details are for the log alone
    response.writeHead(status, { 'Content-Type': 'application/json' }).end(JSON.stringify({ error: code }))
  }
})

const websockets = new WebSocketServer({ noServer: true, maxPayload: 16_384 })
server.on('upgrade', async (request, socket, head) => {
  socket.on('error', () => socket.destroy())
  const refuse = (/** @type {number} */ status) =>
    socket.end(`HTTP/1.1 ${status} Refused\r\nConnection: close\r\nContent-Length: 0\r\n\r\n`)
  try {
    // Without a response: another origin is refused, and no session can begin. Sockets connect again by themselves, and
    // live on while no person is there: they do not extend the session.
    const session = await visits.of(request).get({ touch: false })
    const { user } = session ?? {}
    if (!session || !user) return refuse(401)
    websockets.handleUpgrade(request, socket, head, websocket => {
      websocket.on('error', () => websocket.terminate())
      const forget = watch(session, () => close(websocket))
      websocket.on('close', forget)
      websocket.send(`Hello ${user.name}`)
      websocket.on('message', text => websocket.send(`You said ${text}`))
    })
  } catch (caught) {
    const status = caught instanceof SessionError ? caught.status : 500
    if (status >= 500) console.error(caught)
    refuse(status)
  }
})

/** @param {import('ws').WebSocket} socket */
function close(socket) {
  socket.removeAllListeners('message') // what comes after the logout is not served
  socket.close(4401, 'logged out')
  setTimeout(() => socket.terminate(), 1000) // a client may leave the close unanswered
}

server.listen(process.env.PORT ?? 3000)
