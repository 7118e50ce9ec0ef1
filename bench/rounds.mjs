// @ts-check
// Servers side by side: one process each, loaded in turn, A B C A B C …, so that whatever else the machine does falls on
// all of them alike. What is compared is processor time (user and system) that a server reports of itself.
import { fork } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { Load } from './load.mjs'

const CONNECTIONS = 64
const USERS = 200

/**
 * @typedef {{ name: string, file: string, env?: Record<string, string> }} Contestant
 * @typedef {{ name: string, micros: number, ratio: number, low: number, high: number }} Score
 */

/** @param {readonly number[]} values @param {number} [at] */
export function quantile(values, at = 0.5) {
  const sorted = [...values].sort((a, b) => a - b)
  const index = (sorted.length - 1) * at
  const low = sorted[Math.floor(index)] ?? Number.NaN
  const high = sorted[Math.ceil(index)] ?? Number.NaN
  return low + (high - low) * (index - Math.floor(index))
}

/** A server in a process of its own. */
export class Running {
  #child
  /** The end of what it complained of. */
  #complaint = ''
  /** @type {(message: any) => void} */
  #answer = () => {}
  /** @type {(error: Error) => void} */
  #fail = () => {}

  /** @param {Contestant} contestant */
  constructor({ name, file, env }) {
    const path = fileURLToPath(new URL(`servers/${file}`, import.meta.url))
    // To see what a server spends its time on: '--cpu-prof --cpu-prof-dir=/tmp/profiles'.
    const flags = process.env.BENCH_NODE_FLAGS ?? ''
    this.#child = fork(path, [name], {
      env: { ...process.env, ...env, NODE_ENV: 'production' },
      execArgv: flags === '' ? [] : flags.split(' '),
      stdio: ['ignore', 'inherit', 'pipe', 'ipc'],
    })
    this.#child.stderr?.on('data', chunk => {
      this.#complaint = (this.#complaint + chunk).slice(-2000)
    })
    this.#child.on('message', message => {
      const { error } = /** @type {{ error?: string }} */ (message)
      if (error === undefined) this.#answer(message)
      else this.#fail(new Error(error))
    })
    // It may end before it hears that it should.
    this.#child.on('error', error => this.#fail(error))
    this.#child.on('exit', () => this.#fail(new Error(`the server '${name}' ended: ${this.#complaint}`)))
  }

  /** @param {string} [question] */
  ask(question) {
    return new Promise((resolve, reject) => {
      this.#answer = resolve
      this.#fail = reject
      if (question) this.#child.send(question)
    })
  }

  stop() {
    this.#fail = () => {}
    if (this.#child.connected) this.#child.send('stop')
  }
}

/**
 * Starts the contestants, loads them in interleaved rounds, and compares each with the first, the floor. `around` is
 * called with each contestant's rounds, for counting what happens elsewhere meanwhile.
 * @param {readonly Contestant[]} contestants
 * @param {{ rounds: number, requests: number, warmUp: number, around?: (name: string, load: () => Promise<number>) => Promise<number> }} options
 * @returns {Promise<Score[]>}
 */
export async function compare(contestants, { rounds, requests, warmUp, around = (_, load) => load() }) {
  const running = []
  try {
    for (const contestant of contestants) {
      const server = new Running(contestant)
      const load = new Load(await server.ask(), CONNECTIONS)
      running.push({ name: contestant.name, server, load, micros: /** @type {number[]} */ ([]) })
      await load.logIn(USERS)
      await load.run(warmUp)
    }
    for (let round = 0; round < rounds; round += 1)
      for (const { name, server, load, micros } of running) {
        const before = await server.ask('cpu')
        const sent = await around(name, () => load.run(requests))
        const after = await server.ask('cpu')
        micros.push((after.user + after.system - before.user - before.system) / sent)
      }
  } finally {
    for (const { server, load } of running) {
      load.close()
      server.stop()
    }
  }
  const floor = running[0]?.micros ?? []
  return running.map(({ name, micros }) => {
    const ratios = micros.map((value, round) => value / /** @type {number} */ (floor[round]))
    return {
      name,
      micros: quantile(micros),
      ratio: quantile(ratios),
      low: quantile(ratios, 0.25),
      high: quantile(ratios, 0.75),
    }
  })
}
