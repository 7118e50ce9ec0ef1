// @ts-check
import { createServer } from 'node:http'
import { SessionError, SessionManager } from 'coatcheck'
import { nodeVisits } from 'coatcheck/node'
import { MemoryStore } from 'coatcheck/stores/memory'
import { Server } from 'socket.io'
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
  const forget = watch(session, () => socket.disconnect(true))
  socket.on('disconnect', forget)
  socket.emit('hello', session.user.name)
  socket.on('say', text => socket.emit('said', text))
})

server.listen(process.env.PORT ?? 3000)
