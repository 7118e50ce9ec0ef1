// @ts-check
// What each library is asked, over HTTP, by browsers that keep their cookies.
import { setTimeout as sleep } from 'node:timers/promises'
import { gate } from './gate.mjs'
import { provider } from './provider.mjs'

export const TRIES = 20
const REFRESHES = 200
const LIMIT_SECONDS = 10

let count = 0
/** A name that nobody has had. @param {string} what */
const fresh = what => `${what}${++count}`

/** A browser: it keeps the cookies of the answers in the order in which they arrive. */
export class Browser {
  #origin
  /** @type {Map<string, string>} */
  #cookies
  /** @param {string} origin @param {Map<string, string>} [cookies] */
  constructor(origin, cookies = new Map()) {
    this.#origin = origin
    this.#cookies = cookies
  }

  /** Another one with the same cookies, as of a thief. */
  copy() {
    return new Browser(this.#origin, new Map(this.#cookies))
  }

  /** The same one, at another node. @param {string} origin */
  at(origin) {
    return new Browser(origin, this.#cookies)
  }

  get cookies() {
    return [...this.#cookies]
  }

  get #cookie() {
    return [...this.#cookies].map(([name, value]) => `${name}=${value}`).join('; ')
  }

  /** @param {string} method @param {string} path @param {AbortSignal} [signal] */
  async ask(method, path, signal) {
    const cookie = this.#cookie
    const response = await fetch(this.#origin + path, {
      method,
      // One connection for each: Express closes one on which an error came after the answer, as of a save that is refused.
      headers: { Connection: 'close', Origin: this.#origin, ...(cookie && { Cookie: cookie }) },
      ...(signal && { signal }),
    })
    const body = await response.text()
    for (const line of response.headers.getSetCookie()) {
      const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(line) ?? []
      if (value === '' || /; *Max-Age=0\b|; *Expires=Thu, 01 Jan 1970/i.test(line)) this.#cookies.delete(name)
      else this.#cookies.set(name, value)
    }
    return { status: response.status, body }
  }

  /** Opens a stream; `closed` resolves when one side has closed it. */
  async stream() {
    const response = await fetch(`${this.#origin}/stream`, { headers: { Cookie: this.#cookie } })
    if (response.status !== 200) throw new Error(`GET /stream: ${response.status}`)
    const reader = /** @type {ReadableStream} */ (response.body).getReader()
    await reader.read()
    return { closed: reader.read(), close: () => reader.cancel() }
  }

  /** The same by socket.io. */
  async socket() {
    const { io } = await import('socket.io-client')
    const socket = io(this.#origin, { extraHeaders: { Cookie: this.#cookie }, forceNew: true, reconnection: false })
    await new Promise((resolve, reject) => socket.once('connect', () => resolve(0)).once('connect_error', reject))
    return { closed: new Promise(resolve => socket.once('disconnect', resolve)), close: () => socket.close() }
  }

  /** @param {string} path */
  async post(path) {
    const { status, body } = await this.ask('POST', path)
    if (status !== 200) throw new Error(`POST ${path}: ${status} ${body}`)
  }

  /** @returns {Promise<{ user: string | null, a: number | null, b: number | null }>} */
  async profile() {
    const { status, body } = await this.ask('GET', '/profile')
    // A token that is not good may be an error too.
    return status === 200 ? JSON.parse(body) : { user: null, a: null, b: null }
  }

  async isLoggedIn() {
    return (await this.profile()).user !== null
  }
}

/** @param {string} origin */
async function loggedIn(origin, user = fresh('user')) {
  const browser = new Browser(origin)
  await browser.post(`/login?user=${user}`)
  if ((await browser.profile()).user !== user) throw new Error(`the login of ${user} was not kept`)
  return browser
}

/** In how many of the tries it happens. @param {() => Promise<boolean>} happens */
async function times(happens) {
  let found = 0
  for (let at = 0; at < TRIES; at += 1) if (await happens()) found += 1
  return found
}

/** Somebody has a copy of the cookie, and the browser logs out. @param {string} origin */
async function copyOutlives(origin) {
  const browser = await loggedIn(origin)
  const copy = browser.copy()
  await browser.post('/logout')
  return copy.isLoggedIn()
}
/** @param {string} origin */
export const copied = origin => times(() => copyOutlives(origin))

/**
 * A request is under way, its browser logs out, and then the request writes and answers. A copy of the cookie counts only
 * if the late request is what it lives by.
 * @param {string} origin
 */
export const revived = origin =>
  times(async () => {
    const livesAnyway = await copyOutlives(origin)
    const browser = await loggedIn(origin)
    const copy = browser.copy()
    const late = gate(fresh('gate'))
    const writing = browser.ask('POST', `/write?name=a&gate=${late.name}`)
    await late.arrived(1)
    await browser.post('/logout')
    late.open()
    await writing
    return (await browser.isLoggedIn()) || (!livesAnyway && (await copy.isLoggedIn()))
  })

/** Two requests of one browser are under way at once, and each sets a value of its own. @param {string} origin */
export const lost = origin =>
  times(async () => {
    const browser = await loggedIn(origin)
    const both = gate(fresh('gate'))
    const writing = ['a', 'b'].map(name => browser.ask('POST', `/write?name=${name}&gate=${both.name}`))
    await both.arrived(2)
    both.open()
    await Promise.all(writing)
    const { a, b } = await browser.profile()
    return a !== 1 || b !== 1
  })

/** One device changes the password and logs out everywhere; another was logged in. @param {string} origin */
export const elsewhere = origin =>
  times(async () => {
    const user = fresh('user')
    const one = await loggedIn(origin, user)
    const other = await loggedIn(origin, user)
    await one.post('/everywhere')
    return other.isLoggedIn()
  })

/** The same, and another device has just given the old password: its login ends after the change. @param {string} origin */
export const raced = origin =>
  times(async () => {
    const user = fresh('user')
    const one = await loggedIn(origin, user)
    const other = new Browser(origin)
    const late = gate(fresh('gate'))
    const login = other.ask('POST', `/login?user=${user}&gate=${late.name}`)
    await late.arrived(1)
    await one.post('/everywhere')
    late.open()
    await login
    return other.isLoggedIn()
  })

/** Many requests, at all nodes, find that the access token is over: does one refresh serve them? @param {string[]} origins */
export async function refreshes(origins) {
  const browser = await loggedIn(String(origins[0]))
  const grant = fresh('grant')
  const before = provider.count.refreshed
  await browser.post(`/write?name=refresh&value=${await provider.grant(grant)}`)
  const nodes = origins.map(origin => browser.at(origin))
  const asking = Array.from({ length: REFRESHES }, (_, at) => nodes[at % nodes.length]?.ask('POST', '/access'))
  const answers = await Promise.all(asking)
  const count = provider.count.refreshed - before
  if (count === 1 && answers.every(answer => answer?.status === 200)) return 'yes'
  return (await provider.isEnded(grant)) ? 'no' : `no, ${count} times`
}

/** A user who has something open. @param {string} origin @param {boolean | undefined} bySocketIo */
async function listening(origin, bySocketIo) {
  const browser = await loggedIn(origin)
  const { closed, close } = await (bySocketIo ? browser.socket() : browser.stream())
  return { browser, closed: closed.then(() => true), close }
}
/**
 * How long what a user has open at one node outlives the logout at another. What others have open there stays so.
 * @param {string[]} origins @param {boolean | undefined} bySocketIo
 */
export async function outlives(origins, bySocketIo) {
  const [user, other] = [await listening(origins[0] ?? '', bySocketIo), await listening(origins[0] ?? '', bySocketIo)]
  await user.browser.at(origins.at(-1) ?? '').post('/logout')
  const since = performance.now()
  const isClosed = await Promise.race([user.closed, sleep(LIMIT_SECONDS * 1000, false)])
  const seconds = Math.ceil((performance.now() - since) / 1000)
  if (await Promise.race([other.closed, sleep(100, false)])) throw new Error('what somebody else had open was closed')
  for (const { close } of [user, other]) close()
  return `${isClosed ? `< ${seconds}` : `> ${LIMIT_SECONDS}`}${bySocketIo ? ' with socket.io' : ''}`
}

/** Commands that the database gets for one GET of a user. @param {string} origin @param {import('../engines.mjs').Engine} engine */
export async function commands(origin, { commands }) {
  const browser = await loggedIn(origin)
  await browser.profile()
  return commands?.(async () => {
    for (let at = 0; at < TRIES; at += 1) await browser.profile()
    return TRIES
  })
}

/**
 * Whether the database has the ID of a cookie as it is, and whether that alone logs in.
 * @param {string} origin
 * @param {() => Promise<string>} dump
 */
export async function atRest(origin, dump) {
  const browser = await loggedIn(origin)
  const stored = await dump()
  for (const [name, value] of browser.cookies) {
    const [id = ''] = decodeURIComponent(value).replace(/^s:/, '').split('.')
    if (id.length < 16 || !stored.includes(id)) continue
    const forged = new Browser(origin, new Map([[name, id]]))
    return (await forged.isLoggedIn()) ? 'as they are' : 'as they are; the cookie is signed'
  }
  return 'hashed'
}

/**
 * What the server answers to a logged-in browser, where the database may be away. Asked twice: it may hang, and be gone.
 * @param {string} origin
 */
export async function outage(origin) {
  const browser = await loggedIn(origin)
  return async () => {
    // A cookie that is cleared is cleared for this one alone.
    const own = browser.copy()
    const before = own.cookies.length
    try {
      const { status, body } = await own.ask('GET', '/profile', AbortSignal.timeout(LIMIT_SECONDS * 1000))
      const as = status !== 200 ? `${status}` : JSON.parse(body).user === null ? '200, logged out' : '200, logged in'
      return own.cookies.length < before ? `${as}, cookie cleared` : as
    } catch (error) {
      if (error instanceof Error && error.name === 'TimeoutError') return `none in ${LIMIT_SECONDS} s`
      throw error
    }
  }
}
