// @ts-check
// Servers side by side: one process each, loaded in turn, A B C A B C …, so that whatever else the machine does falls on
// all of them alike. What is compared is processor time (user and system) that a server reports of itself.
import { fork } from 'node:child_process'
import { fileURLToPath } from 'node:url'

/**
 * @typedef {{ name: string, file: string, env?: Record<string, string> }} Contestant
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
    this.#child = fork(path, [name], {
      env: { ...process.env, ...env, NODE_ENV: 'production' },
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
