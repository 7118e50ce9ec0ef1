// @ts-check
// Processor time of a process for a get, a login and a logout through a client of a database, in microseconds each: by the
// manager, and by hand with the same commands through the same client. Of many rounds the least: a busy machine only adds.
import { hash, randomBytes } from 'node:crypto'
import { mysqlPool, nodeRedis, pgPool, storeOver } from '../clients.mjs'
import { coatcheck, userOf } from '../servers/serve.mjs'
import { openSqlite } from '../sqlite.mjs'

// Short rounds, so that nothing disturbs some of them on a busy machine either.
const ROUNDS = 100
/** Of each round, and how many of them are under way at once. */
const SESSIONS = 64
const AT_ONCE = [1, 64]
const IDLE = 1_800_000
const ABSOLUTE = 43_200_000

/**
 * The commands of a store, by hand; the session is what a login writes, and what a read gives.
 * @typedef {{ key: string, id: string, name: string, createdAt: number, expiresAt: number, absoluteExpiresAt: number }} Written
 * @typedef {{ user: { name: string }, expiresAt: number }} Found
 * @typedef {object} Commands
 * @property {(key: string) => Found | null | Promise<Found | null>} read
 * @property {(session: Written) => unknown} write
 * @property {(key: string) => unknown} remove
 *
 * What is measured.
 * @typedef {object} Contestant
 * @property {(user: { id: number, name: string }) => Promise<string>} logIn answers the ID
 * @property {(id: string) => Promise<Found | null>} get
 * @property {(id: string) => Promise<unknown>} logOut
 */

/** @param {any} sessions @returns {Contestant} */
const ours = sessions => ({
  logIn: async user => (await sessions.logIn(null, { user })).secret,
  get: id => sessions.get(id),
  logOut: id => sessions.destroy(id),
})

const keyOf = (/** @type {string} */ id) => id.slice(0, 3) + hash('sha256', id, 'base64url')

/** @param {Commands} commands @returns {Contestant} */
function byHand({ read, write, remove }) {
  const live = async (/** @type {string} */ key) => {
    const found = await read(key)
    return found !== null && found.expiresAt > Date.now() ? found : null
  }
  return {
    async logIn({ id, name }) {
      const secret = randomBytes(33).toString('base64url').slice(0, 43)
      const createdAt = Date.now()
      const times = { createdAt, expiresAt: createdAt + IDLE, absoluteExpiresAt: createdAt + ABSOLUTE }
      await write({ key: keyOf(secret), id: String(id), name, ...times })
      return secret
    },
    get: id => live(keyOf(id)),
    async logOut(id) {
      const key = keyOf(id)
      if ((await live(key)) !== null) await remove(key)
    },
  }
}

/**
 * What a method is called with while something is done. @param {any} object @param {string} method
 * @param {() => Promise<unknown>} work @returns {Promise<{ self: any, args: any[] }[]>}
 */
async function callsOf(object, method, work) {
  const { [method]: original } = object
  /** @type {{ self: any, args: any[] }[]} */
  const calls = []
  object[method] = function (/** @type {any[]} */ ...args) {
    calls.push({ self: this, args })
    return original.apply(this, args)
  }
  await work()
  object[method] = original
  return calls
}

/** @param {any} client @param {string} method @param {(args: string[]) => Promise<any>} send @param {any} sessions @returns {Promise<Commands>} */
async function redisByHand(client, method, send, sessions) {
  const hashes = await callsOf(client, method, async () =>
    sessions.destroy((await sessions.logIn(null, { user: userOf('user=1') })).secret),
  )
  const [put, del] = hashes.flatMap(({ args }) => args.flat().filter(arg => /^[0-9a-f]{40}$/.test(arg))).slice(-2)
  const nameOf = (/** @type {string} */ key) => `by-hand:{${key.slice(0, 3)}}:${key.slice(3)}`
  const until = () => String(Date.now() + 30_000)
  return {
    async read(key) {
      const text = await send(['GET', nameOf(key)])
      if (text === null) return null
      const end = text.indexOf('\n')
      const words = text.slice(0, end).split(' ')
      return {
        user: { id: BigInt(words[10]), name: decodeURIComponent(words[11]) },
        data: JSON.parse(text.slice(end + 1)),
        createdAt: Number(words[3]),
        seenAt: Number(words[4]),
        expiresAt: Number(words[5]),
        absoluteExpiresAt: Number(words[6]),
      }
    },
    write({ key, id, name, createdAt, expiresAt, absoluteExpiresAt }) {
      const session = nameOf(key)
      const user = `by-hand:{${key.slice(0, 3)}}:`
      const keys = [session, session, `${user}u:${id}`, `${user}v:${id}`, session]
      const times = `${createdAt} ${createdAt} ${expiresAt} ${absoluteExpiresAt} 0`
      const value = `s 1 ${key.slice(3, 15)} ${times} - - ${id} ${encodeURIComponent(name)}\n{}`
      const lives = [String(IDLE), String(ABSOLUTE), 'none', '', '', '0']
      return send(['EVALSHA', put, '5', ...keys, until(), String(createdAt), value, ...lives])
    },
    remove: key => send(['EVALSHA', del, '1', nameOf(key), until(), String(Date.now())]),
  }
}

/**
 * A statement of ours that is sent again, with the values of another session in the places of those that it was sent with.
 * @param {readonly unknown[]} values @param {Written} was @returns {(session: Written) => any[]}
 */
function filler(values, was) {
  const names = /** @type {(keyof Written)[]} */ (Object.keys(was))
  const places = values.flatMap((value, at) => names.filter(name => was[name] === value).map(name => ({ name, at })))
  return session => {
    const filled = [...values]
    for (const { name, at } of places) filled[at] = session[name]
    return filled
  }
}

/** A row as ours is sent: all cells in the order of the columns. @param {readonly any[]} cells @returns {Found} */
const sessionIn = ([, , , , id, name, , data, , , createdAt, seenAt, expiresAt, absoluteExpiresAt]) => ({
  user: { id: BigInt(id), name },
  data: JSON.parse(data),
  createdAt,
  seenAt,
  expiresAt,
  absoluteExpiresAt,
})

/**
 * @param {any} sessions
 * @param {(work: () => Promise<unknown>) => Promise<{ statement: any, values: any[] }[]>} recorded the statements of some work
 * @param {(statement: any, values: any[]) => unknown} run
 * @param {(statement: any, key: string) => Promise<Found | null>} find
 * @returns {Promise<Commands>}
 */
async function sqlByHand(sessions, recorded, run, find) {
  // A user's first login writes more.
  const logIn = () => sessions.logIn(null, { user: userOf('user=1') })
  await sessions.destroy((await logIn()).secret)
  let session = /** @type {any} */ (null)
  const logins = await recorded(async () => {
    session = await logIn()
  })
  const reads = await recorded(() => sessions.get(session.secret))
  const removals = await recorded(() => sessions.destroy(session.secret))
  const [insert, select, remove] = [logins, reads, removals].map(sent => /** @type {any} */ (sent.at(-1)))
  const { key, user, createdAt, expiresAt, absoluteExpiresAt } = session
  const was = { key, id: String(user.id), name: user.name, createdAt, expiresAt, absoluteExpiresAt }
  const valuesOf = filler(insert.values, was)
  return {
    read: key => find(select.statement, key),
    write: written => run(insert.statement, valuesOf(written)),
    remove: key => run(remove.statement, [key]),
  }
}

/** @param {Parameters<typeof storeOver>} over */
async function managerOver(...over) {
  const { SessionManager } = await coatcheck('index.js')
  // On a busy machine a burst may wait longer than the usual 2 seconds.
  return new SessionManager({ store: await storeOver(...over), storeTimeout: '30s', sweepInterval: false })
}

/** The manager over each client, and the commands by hand. @type {Record<string, () => Promise<[any, Commands]>>} */
const CLIENTS = {
  async 'node-redis'() {
    const client = await nodeRedis(process.env.REDIS_URL ?? '')
    const sessions = await managerOver('Redis', client)
    return [sessions, await redisByHand(client, 'sendCommand', args => client.sendCommand(args), sessions)]
  },
  async ioredis() {
    const { Redis } = await import('ioredis')
    const client = /** @type {any} */ (new Redis(process.env.REDIS_URL ?? ''))
    const sessions = await managerOver('Redis', client)
    const send = (/** @type {string[]} */ [command, ...args]) => client.call(command, args)
    return [sessions, await redisByHand(client, 'call', send, sessions)]
  },
  async pg() {
    const { default: pg } = await import('pg')
    const pool = await pgPool(process.env.SQL_URL ?? '')
    const sessions = await managerOver('Postgres', pool)
    const recorded = async (/** @type {() => Promise<unknown>} */ work) =>
      (await callsOf(pg.Client.prototype, 'query', work)).map(({ args: [{ name, text, values }] }) => ({
        statement: { name, text },
        values,
      }))
    const run = (/** @type {any} */ statement, /** @type {any[]} */ values) => pool.query({ ...statement, values })
    const find = async (/** @type {any} */ statement, /** @type {string} */ key) => {
      const { rows } = await run(statement, [key])
      return rows[0] === undefined ? null : sessionIn(rows[0].cells)
    }
    return [sessions, await sqlByHand(sessions, recorded, run, find)]
  },
  async mysql2() {
    const pool = await mysqlPool(process.env.SQL_URL ?? '')
    const sessions = await managerOver('Mysql', pool)
    const taken = /** @type {any} */ (await pool.getConnection())
    const prototype = Object.getPrototypeOf(taken.connection)
    taken.release()
    const recorded = async (/** @type {() => Promise<unknown>} */ work) =>
      (await callsOf(prototype, 'execute', work)).map(({ args: [statement, values] }) => ({ statement, values }))
    const run = (/** @type {any} */ statement, /** @type {any[]} */ values) => pool.execute(statement, values)
    const find = async (/** @type {any} */ statement, /** @type {string} */ key) => {
      const [rows] = /** @type {any} */ (await run(statement, [key]))
      const cells = rows[0]?.cells
      return cells === undefined ? null : sessionIn(typeof cells === 'string' ? JSON.parse(cells) : cells)
    }
    return [sessions, await sqlByHand(sessions, recorded, run, find)]
  },
  async sqlite() {
    const { SQLITE_DRIVER: driver = '', SQLITE_FILE: file = '' } = process.env
    const database = await openSqlite(driver, file)
    const sessions = await managerOver('Sqlite', database)
    const prototype = Object.getPrototypeOf(database.prepare('SELECT 1'))
    const textOf = (/** @type {any} */ { source, sourceSQL }) => source ?? sourceSQL
    const recorded = async (/** @type {() => Promise<unknown>} */ work) => {
      const reads = []
      const writes = await callsOf(prototype, 'run', async () => {
        reads.push(...(await callsOf(prototype, 'get', work)))
      })
      return [...reads, ...writes].map(({ self, args }) => ({ statement: textOf(self), values: args }))
    }
    /** @type {Map<string, any>} */
    const statements = new Map()
    const prepared = (/** @type {string} */ text) => {
      const known = statements.get(text) ?? database.prepare(text)
      statements.set(text, known)
      return known
    }
    const run = (/** @type {string} */ text, /** @type {any[]} */ values) => prepared(text).run(...values)
    const find = async (/** @type {string} */ text, /** @type {string} */ key) => {
      const row = prepared(text).get(key)
      return row === undefined ? null : sessionIn(Object.values(row))
    }
    return [sessions, await sqlByHand(sessions, recorded, run, find)]
  },
}

/** @template Item, Answer @param {(item: Item) => Promise<Answer>} work @param {readonly Item[]} items @param {number} atOnce */
async function time(work, items, atOnce) {
  /** @type {Answer[]} */
  const answers = []
  const before = process.cpuUsage()
  if (atOnce === 1) for (const item of items) answers.push(await work(item))
  else
    for (let first = 0; first < items.length; first += atOnce)
      answers.push(...(await Promise.all(items.slice(first, first + atOnce).map(work))))
  const { user, system } = process.cpuUsage(before)
  return { answers, cost: (user + system) / items.length }
}

const [sessions, commands] = (await CLIENTS[process.argv[2] ?? '']?.()) ?? []
if (commands === undefined) throw new Error(`no such client: ${process.argv[2]}`)
const users = Array.from({ length: SESSIONS }, (_, index) => userOf(`user=${index + 1}`))
// Ours first: a user's first login writes more, and by hand it is never the first.
const contestants = Object.entries({ coatcheck: ours(sessions), 'by hand': byHand(commands) })
/** @type {Record<string, number>} */
const least = {}
for (let round = 0; round < ROUNDS; round += 1)
  for (const atOnce of AT_ONCE)
    for (const [who, { logIn, get, logOut }] of contestants) {
      const login = await time(logIn, users, atOnce)
      const found = await time(get, login.answers, atOnce)
      const logout = await time(logOut, login.answers, atOnce)
      for (const [at, { name }] of users.entries())
        if (found.answers[at]?.user.name !== name)
          throw new Error(`${who}: ${found.answers[at]?.user.name}, not ${name}`)
      for (const [name, { cost }] of Object.entries({ get: found, login, logout })) {
        const cell = `${name} ${atOnce} ${who}`
        least[cell] = Math.min(least[cell] ?? Number.POSITIVE_INFINITY, cost)
      }
    }
process.send?.(least)
process.exit()
