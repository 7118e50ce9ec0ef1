// @ts-check
import { createServer } from 'node:http'
import { SessionError, SessionManager } from 'coatcheck'
import { nodeVisits } from 'coatcheck/node'
import { MemoryStore } from 'coatcheck/stores/memory'
import { Server } from 'socket.io'

const sessions = new SessionManager({
  store: new MemoryStore(),
  // What ends in this process is known here at once; what ends elsewhere, or expires, at the next check.
  onEvent: event => {
    if (event.type === 'destroyed') io.in(event.key).disconnectSockets(true)
    if (event.type === 'invalidated') io.in(`user ${event.userId}`).disconnectSockets(true)
    // The browser connects again, with its new cookie. So does the one that a logout everywhere excepted.
    if (event.type === 'regenerated') io.in(event.oldKey).disconnectSockets(true)
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

const io = new Server(server, {
  maxHttpBufferSize: 16_384,
  // The first request is the upgrade then, which is refused to pages of other origins. Long polling begins with a GET.
  transports: ['websocket'],
  allowRequest: (request, answer) => {
    // Without a response no session can begin. Sockets connect again by themselves: that does not extend the session.
    visits
      .of(request)
      .get({ touch: false })
      .then(
        session => answer(session?.user ? null : 'ERR_SESSION_UNAUTHENTICATED', Boolean(session?.user)),
        error => answer(error.code, false),
      )
  },
})

io.use(async (socket, next) => {
  try {
    socket.data.session = await visits.of(socket.request).get({ touch: false }) // the same visit: not read again
    next()
  } catch (error) {
    next(/** @type {Error} */ (error))
  }
})

io.on('connection', socket => {
  /** @type {{ session: import('coatcheck').UserSession<any> }} */
  const { session } = socket.data
  socket.join([session.key, `user ${session.user.id}`]) // so that onEvent finds it
  const check = setInterval(
    () => {
      // An outage is no logout: asked again later.
      sessions.get(session.secret, { touch: false }).then(
        live => live ?? socket.disconnect(true),
        error => console.error(error),
      )
    },
    Number(process.env.CHECK_EVERY ?? 60_000),
  )
  socket.on('disconnect', () => clearInterval(check))
  socket.emit('hello', session.user.name)
  socket.on('say', text => socket.emit('said', text))
})

server.listen(process.env.PORT ?? 3000)
