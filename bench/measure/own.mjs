// @ts-check
// What session work alone takes: microseconds of processor time a request, or bytes of heap. Real request and response
// objects, no socket. Of many rounds the least: a busy machine only adds.
import { hash, randomBytes } from 'node:crypto'
import { IncomingMessage, ServerResponse } from 'node:http'
import { Socket } from 'node:net'
import expressSession from 'express-session'
import { fastifyApp, fastifySessionServer, SECRET } from '../servers/frameworks.mjs'
import { coatcheckVisits } from '../servers/handlers.mjs'
import { coatcheck, idOf, userOf } from '../servers/serve.mjs'

const [who = '', figure = 'time'] = process.argv.slice(2)
const isBytes = figure === 'bytes'
const ROUNDS = isBytes ? 8 : 25
const AT_ONCE = 64
const REQUESTS = 2048
const HEADERS = {
  host: '127.0.0.1',
  connection: 'keep-alive',
  'user-agent': 'Mozilla/5.0 (X11; Linux x86_64) Chrome/150.0.0.0',
  accept: 'application/json',
  'sec-fetch-site': 'same-origin',
  'sec-fetch-mode': 'cors',
  'sec-fetch-dest': 'empty',
  'accept-encoding': 'gzip, br',
  'accept-language': 'en',
}
/** Method and path of each, in the order of a round: what a login began is used, and then ended. */
const REQUEST = {
  login: ['POST', '/login?user='],
  get: ['GET', '/profile?user='],
  anonymous: ['GET', '/profile'],
  logout: ['POST', '/logout'],
}
const send = (/** @type {ServerResponse} */ response, head = {}) => response.writeHead(200, head).end()
const userIn = (/** @type {string | undefined} */ url) => (url === '/profile' ? undefined : userOf(url))
/** @param {{ name: string } | undefined} user @param {string | undefined} url */
const check = (user, url) => {
  if (user?.name !== userIn(url)?.name) throw new Error(`${url}: ${user?.name}`)
}

const byHand = () => {
  const sessions = new Map()
  const PERSONAL = { 'Cache-Control': 'no-store', Vary: 'Cookie' }
  const keyOf = (/** @type {string} */ id) => hash('sha256', id, 'base64url')
  return async (/** @type {IncomingMessage} */ request, /** @type {ServerResponse} */ response) => {
    const id = idOf(request)
    if (request.method === 'GET') {
      const kept = id && sessions.get(keyOf(id))
      const session = kept && kept.expiresAt > Date.now() ? { ...kept, data: JSON.parse(kept.data) } : null
      check((await session)?.user, request.url)
      return send(response, session ? PERSONAL : { Vary: 'Cookie' })
    }
    let cookie = 'session_id=; Max-Age=0; Path=/; HttpOnly; Secure; SameSite=Lax'
    if (request.url === '/logout') await sessions.delete(keyOf(id ?? ''))
    else {
      const secret = randomBytes(32).toString('base64url')
      cookie = `session_id=${secret}; Max-Age=1800; Path=/; HttpOnly; Secure; SameSite=Lax`
      const kept = { user: userOf(request.url), data: '{}', expiresAt: Date.now() + 1_800_000 }
      await sessions.set(keyOf(secret), kept)
    }
    send(response, { ...PERSONAL, 'Set-Cookie': cookie })
  }
}

async function ours() {
  const { MemoryStore } = await coatcheck('stores/memory.js')
  const { visits } = await coatcheckVisits(new MemoryStore())
  return async (/** @type {IncomingMessage} */ request, /** @type {ServerResponse} */ response) => {
    const visit = visits.of(request, response)
    if (request.method === 'GET') check((await visit.get())?.user, request.url)
    else if (request.url === '/logout') await visit.logOut()
    else await visit.logIn({ user: userOf(request.url) })
    send(response)
  }
}

function expressSessions() {
  const middleware = expressSession({ secret: SECRET, resave: false, saveUninitialized: false, name: 'session_id' })
  return (/** @type {any} */ request, /** @type {any} */ response) =>
    middleware(request, response, () => {
      const done = () => send(response)
      if (request.method === 'GET') check(request.session.user, request.url)
      else if (request.url === '/logout') return request.session.destroy(done)
      else
        return request.session.regenerate(() => {
          request.session.user = userOf(request.url)
          done()
        })
      done()
    })
}

const nothing = async (/** @type {IncomingMessage} */ request, /** @type {ServerResponse} */ response) => {
  check(await userIn(request.url), request.url)
  send(response)
}
const without = { login() {}, write() {}, logout() {}, profile: (/** @type {any} */ { url }) => userIn(url) }

/** The handler of each, and of the same without sessions. @type {Record<string, () => Promise<any>[]>} */
const CONTESTANTS = {
  'by hand': () => [byHand(), nothing],
  coatcheck: () => [ours(), nothing],
  'express-session': () => [expressSessions(), nothing],
  '@fastify/session': () => [fastifySessionServer(), fastifyApp(() => {}, without)],
}

// As many as there are connections; what a socket keeps it has once.
const sockets = Array.from({ length: AT_ONCE }, () =>
  Object.assign(new Socket(), { _peername: { address: '127.0.0.1' } }),
)

/** @param {any} handler @param {Socket} socket @param {string} method @param {string} url @param {string | undefined} cookie */
const exchange = (handler, socket, method, url, cookie) =>
  new Promise(resolve => {
    const request = Object.assign(new IncomingMessage(socket), { method, url, httpVersion: '1.1' })
    request.headers = cookie === undefined ? { ...HEADERS } : { ...HEADERS, cookie }
    const response = /** @type {any} */ (new ServerResponse(request))
    response.end = () => resolve(response._header)
    handler(request, response)
  })

/** Microseconds or bytes a request, and the heads of the responses. @param {any} handler @param {keyof typeof REQUEST} name @param {string[]} cookies */
async function time(handler, name, cookies) {
  const [method = '', path = ''] = REQUEST[name]
  const heads = []
  if (isBytes) globalThis.gc?.()
  const { heapUsed } = process.memoryUsage()
  const before = process.cpuUsage()
  for (let first = 0; first < REQUESTS; first += AT_ONCE)
    heads.push(
      ...(await Promise.all(
        sockets.map((socket, at) =>
          exchange(handler, socket, method, path.endsWith('=') ? path + (first + at) : path, cookies[first + at]),
        ),
      )),
    )
  const { user, system } = process.cpuUsage(before)
  const bytes = process.memoryUsage().heapUsed - heapUsed
  return { heads, cost: (isBytes ? bytes : user + system) / REQUESTS }
}

/** @type {Record<string, number>[]} */
const least = [{}, {}]
const handlers = await Promise.all(CONTESTANTS[who]?.() ?? [])
for (let round = 0; round < ROUNDS; round += 1)
  for (const [is, handler] of handlers.entries()) {
    /** @type {string[]} */
    let cookies = []
    for (const name of /** @type {(keyof typeof REQUEST)[]} */ (Object.keys(REQUEST))) {
      const { heads, cost } = await time(handler, name, name === 'anonymous' ? [] : cookies)
      if (name === 'login') cookies = heads.map(head => /set-cookie: ([^;]+)/i.exec(head)?.[1] ?? '')
      least[is][name] = Math.min(least[is][name] ?? Number.POSITIVE_INFINITY, cost)
    }
  }
const [own = {}, alone = {}] = least
process.send?.(Object.fromEntries(Object.keys(REQUEST).map(name => [name, own[name] - alone[name]])))
process.exit()
