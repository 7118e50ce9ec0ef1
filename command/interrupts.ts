import { EXIT } from './exit.ts'

const CODES = { SIGINT: EXIT.interrupted, SIGTERM: EXIT.terminated } as const
type Stop = keyof typeof CODES
/** One press of Ctrl-C under npx comes twice, from the terminal and from npm: within so many ms it is the same. */
const SAME_PRESS = 500

/**
 * The first signal asks the work to stop where it can be repeated, the second ends the process at once. Before any work
 * the first one does.
 */
export class Interrupts {
  readonly #controller = new AbortController()
  readonly #say: (text: string) => void
  #working = false
  #code: (typeof CODES)[Stop] | null = null
  #at = 0

  constructor(say: (text: string) => void) {
    this.#say = say
    for (const signal of Object.keys(CODES) as Stop[]) process.on(signal, () => this.#stop(CODES[signal]))
  }

  get signal(): AbortSignal {
    return this.#controller.signal
  }

  /** What to end with, where a signal came; else `null`. */
  get code(): (typeof CODES)[Stop] | null {
    return this.#code
  }

  /** From now on what is under way is finished first. */
  begin(): void {
    this.#working = true
  }

  #stop(code: (typeof CODES)[Stop]): void {
    if (!this.#working) process.exit(code)
    const now = performance.now()
    if (this.#code !== null) {
      if (now - this.#at > SAME_PRESS) process.exit(this.#code)
      return
    }
    this.#code = code
    this.#at = now
    this.#say('Interrupted: the call under way is finished first; a second signal ends at once.')
    this.#controller.abort()
  }
}
