// @ts-check
import { createServer } from 'node:http'
import { SessionError, SessionManager } from 'coatcheck'
import { nodeVisits } from 'coatcheck/node'
import { MemoryStore } from 'coatcheck/stores/memory'
import { WebSocketServer } from 'ws'

/** The open sockets, each with its session. @type {Map<import('ws').WebSocket, import('coatcheck').Session<any>>} */
const open = new Map()
/** @param {import('ws').WebSocket} socket */
function close(socket) {
  socket.removeAllListeners('message') // what comes after the logout is not served
  socket.close(4401, 'logged out')
  setTimeout(() => socket.terminate(), 1000) // a client may leave the close unanswered
}
/** @param {(session: import('coatcheck').Session<any>) => boolean} isOver */
function closeSockets(isOver) {
  for (const [socket, session] of open) if (isOver(session)) close(socket)
}

const sessions = new SessionManager({
  store: new MemoryStore(),
  // What ends in this process is known here at once; what ends elsewhere, or expires, at the next check.
  onEvent: event => {
    if (event.type === 'destroyed') closeSockets(({ key }) => key === event.key)
    if (event.type === 'invalidated') closeSockets(({ user }) => user?.id === event.userId)
    // The browser connects again, with its new cookie. So does the one that a logout everywhere excepted.
    if (event.type === 'regenerated') closeSockets(({ key }) => key === event.oldKey)
  },
})
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
      keep(session, websocket)
      websocket.send(`Hello ${user.name}`)
      websocket.on('message', text => websocket.send(`You said ${text}`))
    })
  } catch (caught) {
    const status = caught instanceof SessionError ? caught.status : 500
    if (status >= 500) console.error(caught)
    refuse(status)
  }
})

/**
 * Closes the socket once its session has ended.
 * @param {import('coatcheck').Session<any>} session
 * @param {import('ws').WebSocket} websocket
 */
function keep(session, websocket) {
  open.set(websocket, session)
  const check = setInterval(
    () => {
      // An outage is no logout: asked again later.
      sessions.get(session.secret, { touch: false }).then(
        live => live ?? close(websocket),
        error => console.error(error),
      )
    },
    Number(process.env.CHECK_EVERY ?? 60_000),
  )
  websocket.on('error', () => websocket.terminate())
  websocket.on('close', () => {
    clearInterval(check)
    open.delete(websocket)
  })
}

server.listen(process.env.PORT ?? 3000)
