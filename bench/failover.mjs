// @ts-check
// How soon the Redis store is back with each client when its connection is of no use: the table of docs/stores/redis.md.
import { readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { coatcheck } from './servers/serve.mjs'
import { fixed, table } from './table.mjs'
import './typescript.mjs'

/** How long each failure is looked at, in ms. */
const LONG = 8000
const ada = { user: { id: 'ada', name: 'Ada' } }
const pause = (/** @type {number} */ ms) => new Promise(resolve => setTimeout(resolve, ms))
const page = fileURLToPath(new URL('../docs/stores/redis.md', import.meta.url))

const { SessionManager } = await coatcheck('index.js')
const { RedisStore } = await coatcheck('stores/redis.js')
const over = (/** @type {unknown} */ client, storeTimeout = '1s') =>
  new SessionManager({ store: new RedisStore(client), userIds: 'string', storeTimeout, sweepInterval: false })
/** Sets a session up, on a busy machine too. @param {unknown} client */
const begin = client => over(client, '30s').create(ada)

/**
 * Calls again and again for a while: how often it failed, when it first succeeded, and all that came of it.
 * @param {() => Promise<unknown>} call
 */
async function repeat(call) {
  const began = performance.now()
  /** @type {{ at: number, end: number, answer: unknown }[]} */
  const answers = []
  let failed = 0
  while (performance.now() - began < LONG) {
    const at = performance.now()
    await call().then(
      answer => answers.push({ at, end: performance.now(), answer }),
      () => failed++,
    )
    await pause(20)
  }
  return { failed, answers, began }
}

/** @param {Awaited<ReturnType<typeof repeat>>} calls */
const seconds = ({ answers, began }) =>
  answers.length === 0
    ? `more than ${LONG / 1000} s`
    : `${fixed(/** @type {{ at: number }} */ (answers[0].at - began) / 1000, 1)} s`

/** @param {string} name @param {(url: string) => Promise<any>} open */
async function demoted(name, open) {
  const { startPair } = await import(/** @type {string} */ ('../test/support/redis/failures.ts'))
  const { STANDALONE } = await import(/** @type {string} */ ('../test/support/redis/clients.ts'))
  const pair = await startPair()
  const [own, other] = [
    await open(`redis://127.0.0.1:${pair.address.port}`),
    await STANDALONE['node-redis 6'](pair.next.url),
  ]
  const sessions = over(own.client)
  const { secret } = await begin(own.client)
  await pair.failOver()
  await over(other.client, '30s').destroy(secret)
  setTimeout(() => pair.address.redirect(pair.next.port), 1000)
  let refusedAt = Number.POSITIVE_INFINITY
  const create = () =>
    sessions.create(ada).finally(() => {
      refusedAt = Math.min(refusedAt, performance.now())
    })
  const [logins, reads] = await Promise.all([repeat(create), repeat(() => sessions.get(secret))])
  const revived = reads.answers.filter(({ at, answer }) => answer !== null && at > refusedAt).length
  const row = [seconds(logins), logins.failed, revived]
  await Promise.all([sessions.close(), own.close(), other.close()])
  await pair.stop()
  console.log(`${name}: an address that leads to another primary after a second: ${row.join(', ')}`)
  return row
}

/** @param {string} name */
async function silent(name) {
  const { startBehindProxies } = await import(/** @type {string} */ ('../test/support/redis/failures.ts'))
  const place = await startBehindProxies(name)
  const sessions = over(place.client)
  const { secret } = await begin(place.client)
  place.silence()
  const reads = await repeat(() => sessions.get(secret))
  await Promise.all([sessions.close(), place.close()])
  await place.stop()
  console.log(`${name}: silent: ${seconds(reads)}, ${reads.failed} failed`)
  return [seconds(reads), reads.failed]
}

/** Prints the table; `write` puts it into the page as well. @param {boolean} write @param {readonly string[]} heading */
export async function benchFailover(write, heading) {
  const { CLUSTER, SENTINEL, STANDALONE } = await import(/** @type {string} */ ('../test/support/redis/clients.ts'))
  const rows = []
  for (const name of Object.keys({ ...STANDALONE, ...CLUSTER, ...SENTINEL })) {
    const open = STANDALONE[name]
    const first = open ? await demoted(name, open) : ['follows by itself', '', '']
    rows.push([name, ...first, ...(await silent(name))].map(String))
  }
  const head = [
    'client',
    'another primary: first login',
    'logins refused',
    'ended sessions shown after that',
    'silent connection: first answer',
    'reads failed',
  ]
  const printed = table(head, rows)
  console.log(`\n${printed}`)
  if (!write) return
  const text = readFileSync(page, 'utf8')
  const mark = '<!-- printed by npm run bench -- failover --write -->\n'
  const at = text.indexOf(mark)
  if (at < 0) throw new Error('docs/stores/redis.md has no place for the table')
  const rest = text.slice(at + mark.length).replace(/^(?:\|.*\n)*(?:\n`npm run bench.*\n)?/, '')
  writeFileSync(page, `${text.slice(0, at)}${mark}${printed}\n\n${heading.slice(0, 2).join(' ')}\n${rest}`)
}
