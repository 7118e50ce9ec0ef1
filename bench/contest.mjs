// @ts-check
// One table: the servers of one store, each operation in interleaved rounds.

import { Load } from './load.mjs'
import { KEPT, OPERATIONS, profiles } from './operations.mjs'
import { onOneProcessor } from './processors.mjs'
import { quantile, Running } from './rounds.mjs'
import { fixed, table, whole } from './table.mjs'

const CONNECTIONS = 64

/**
 * Processor time per request, µs, of each round, by operation.
 * @typedef {Map<string, number[]>} Figures
 * @typedef {{ row: import('./stores.mjs').Row, server: Running, many: Load, one: Load, cookies: string[], figures: Figures }} Contender
 *
 * @typedef {object} Plan how much is measured
 * @property {readonly string[]} operations
 * @property {boolean} isQuick
 * @property {(operation: string) => number} seconds how long an operation may take, but for its least rounds
 * @property {number} rounds at most
 * @property {number} leastRounds
 * @property {Readonly<Record<string, { requests: number, seconds: number }>>} warmUp by operation: as many requests before
 *   its rounds, unless the time is over first
 */

/** Answers the body. @param {Load} load @param {Buffer} request */
async function bodyOf(load, request) {
  let body = ''
  await load.stream([request], (_, answer) => {
    body = answer.body
  })
  return body
}

/**
 * A server that does not do what the others do would be measured doing nothing.
 * @param {import('./stores.mjs').Row} row
 * @param {Load} load
 */
export async function check(row, load) {
  const profile = (/** @type {string | undefined} */ cookie) => bodyOf(load, load.request('GET', '/profile', cookie))
  const expect = async (
    /** @type {string} */ when,
    /** @type {string | undefined} */ cookie,
    /** @type {string} */ body,
  ) => {
    const got = await profile(cookie)
    if (got !== body) throw new Error(`${row.label}, ${when}: ${got} in place of ${body}`)
  }
  const USER = '{"id":7,"name":"user 7"}'
  await expect('anonymous', undefined, 'null')
  const [first, second, third] = /** @type {[string, string, string]} */ (await load.cookiesOf([7, 7, 7]))
  await expect('logged in', first, USER)
  await bodyOf(load, load.request('POST', '/write?value=5', first))
  await expect('after a write', first, USER)
  await bodyOf(load, load.request('POST', '/logout', first))
  await expect('after a logout', first, row.keepsNothing ? USER : 'null')
  await expect('another session after a logout', second, USER)
  if (!row.everywhere) return
  await bodyOf(load, load.request('POST', '/logout-everywhere', second))
  await expect('after a logout-everywhere', second, 'null')
  await expect('another session after a logout-everywhere', third, 'null')
}

const WARM_UP_STEP = 1024

/**
 * What V8 has not compiled yet is slower by a multiple, and its other threads compile meanwhile, for longer where there is
 * more of it: a service that runs for days has all of it compiled. A read alone and reads that share a command take
 * different ways, so that each operation needs its own.
 * @param {Contender} contender
 * @param {string} name
 * @param {Plan['warmUp']} plan
 */
async function warmUp({ many, one, cookies }, name, plan) {
  const { requests, seconds } = plan[name] ?? { requests: 0, seconds: 0 }
  const operation = /** @type {import('./operations.mjs').Operation} */ (OPERATIONS[name])
  const isAlone = operation.connections === 1
  const load = isAlone ? one : many
  const end = performance.now() + seconds * 1000
  for (let sent = 0; sent < requests && performance.now() < end; sent += WARM_UP_STEP) {
    const step = await operation.requests(load, cookies, WARM_UP_STEP, sent)
    if (isAlone) await load.stream(step)
    else await load.bursts(step)
  }
}

/** @param {Contender} contender @param {string} name @param {number} round @param {boolean} isQuick */
async function measure({ server, many, one, cookies, figures }, name, round, isQuick) {
  const operation = /** @type {import('./operations.mjs').Operation} */ (OPERATIONS[name])
  const isAlone = operation.connections === 1
  const load = isAlone ? one : many
  // With one connection long ones: a server that comes back from the others' turn is slower at first.
  const count = !isAlone ? 8 * CONNECTIONS : isQuick ? 250 : 1000
  const cpu = async () => {
    const { user, system } = await server.ask('cpu')
    return user + system
  }
  // A touch that became due while the others had their turn is no part of the request: once per interval, not per round.
  await many.bursts(await profiles(many, cookies, KEPT, 0))
  const requests = await operation.requests(load, cookies, count, round * count)
  const before = await cpu()
  await (isAlone ? load.stream(requests) : load.bursts(requests))
  figures.get(name)?.push(((await cpu()) - before) / count)
}

/** @typedef {{ ratio: number, low: number, high: number, rounds: number }} Median */

/**
 * Prints the table, and answers the median ratio of each row and operation.
 * @param {import('./stores.mjs').Table} shown
 * @param {Plan} plan
 * @returns {Promise<Map<string, Map<string, Median>>>}
 */
export async function contest({ title, floor, engine: start, rows }, plan) {
  const engine = start === null ? null : await start()
  /** @type {Contender[]} */
  const contenders = []
  /** @type {string[]} */
  const left = []
  try {
    const wanted = plan.isQuick ? rows.filter(row => !row.isSlow) : rows
    if (wanted.length < rows.length)
      left.push(
        `in a quick run: ${rows
          .filter(row => row.isSlow)
          .map(({ label }) => label)
          .join('; ')}`,
      )
    await Promise.all(
      wanted.map(async (row, at) => {
        const server = new Running({ name: row.label, file: row.file, ...(engine && { env: engine.env(at) }) })
        try {
          const port = await server.ask()
          const many = new Load(port, CONNECTIONS)
          await check(row, many)
          const users = Array.from({ length: KEPT }, (_, user) => user + 1)
          const cookies = await many.cookiesOf(users)
          contenders.push({ row, server, many, one: new Load(port, 1), cookies, figures: new Map() })
        } catch (error) {
          server.stop()
          left.push(`${row.label}: ${error instanceof Error ? error.message : error}`)
        }
      }),
    )
    contenders.sort((a, b) => wanted.indexOf(a.row) - wanted.indexOf(b.row))
    if (contenders[0]?.row !== wanted[0]) throw new Error(`the floor did not start: ${left.join('; ')}`)

    let fewest = Number.POSITIVE_INFINITY
    let most = 0
    for (const name of plan.operations) {
      const taking = contenders.filter(({ row }) => !OPERATIONS[name]?.skips?.(row))
      for (const contender of taking) await warmUp(contender, name, plan.warmUp)
      const work = async () => {
        // Code that runs for the first time is not what is compared.
        for (const contender of taking) await measure(contender, name, 0, plan.isQuick)
        for (const { figures } of taking) figures.set(name, [])
        const end = performance.now() + plan.seconds(name) * 1000
        let round = 0
        for (; round < plan.rounds && (round < plan.leastRounds || performance.now() < end); round += 1)
          for (const contender of taking) await measure(contender, name, round + 1, plan.isQuick)
        fewest = Math.min(fewest, round)
        most = Math.max(most, round)
      }
      if (OPERATIONS[name]?.connections !== 1) await work()
      else if (!(await onOneProcessor(work)))
        left.push(
          '1 connection on one processor: taskset, which Linux has, is missing; the system put them where it liked',
        )
    }
    return print(`${title}${engine ? `: ${engine.version}` : ''}`, floor, contenders, plan, left, [fewest, most])
  } finally {
    for (const { server, many, one } of contenders) {
      many.close()
      one.close()
      server.stop()
    }
    await engine?.stop()
  }
}

/**
 * @param {string} title
 * @param {string} floor
 * @param {readonly Contender[]} contenders
 * @param {Plan} plan
 * @param {readonly string[]} left
 * @param {[number, number]} rounds
 */
function print(title, floor, contenders, plan, left, [fewest, most]) {
  /** @type {Map<string, Map<string, Median>>} */
  const medians = new Map()
  const lines = []
  for (const name of plan.operations) {
    const { title: what } = /** @type {import('./operations.mjs').Operation} */ (OPERATIONS[name])
    const bottom = contenders[0]?.figures.get(name) ?? []
    for (const [at, { row, figures }] of contenders.entries()) {
      const own = figures.get(name)
      if (!own) continue
      const all = own.map((value, round) => value / Number(bottom[round]))
      const [ratio, low, high] = [quantile(all), quantile(all, 0.25), quantile(all, 0.75)]
      medians.set(row.label, (medians.get(row.label) ?? new Map()).set(name, { ratio, low, high, rounds: all.length }))
      const perSecond = whole(1e6 / quantile(own))
      lines.push([at === 0 ? what : '', row.label, fixed(ratio), `${fixed(low)} to ${fixed(high)}`, perSecond])
    }
  }
  console.log(`\n### ${title}\n`)
  console.log(`By hand is ${floor}. Rounds: ${fewest === most ? most : `${fewest} to ${most}`}.\n`)
  const head = ['request', 'who', 'CPU, by hand = 1', 'middle half', 'requests per second of CPU']
  console.log(table(head, lines, 2))
  if (left.length > 0) console.log(`\nNot in this table:\n\n${left.map(line => `- ${line}`).join('\n')}`)
  return medians
}
