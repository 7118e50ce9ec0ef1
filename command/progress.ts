/** How often at most the line is drawn anew, in ms. */
const PACE = 100

type Terminal = Pick<NodeJS.WriteStream, 'write' | 'isTTY'>

/** One line on a terminal that says how far long work has come; nothing where no person looks. */
export class Progress {
  readonly #terminal: Terminal | null
  readonly #now: () => number
  #drawnAt = Number.NEGATIVE_INFINITY
  #shown = false

  constructor(terminal: Terminal, { json = false, now = () => performance.now() } = {}) {
    this.#terminal = terminal.isTTY && !json ? terminal : null
    this.#now = now
  }

  show(text: string): void {
    const now = this.#now()
    if (this.#terminal === null || now - this.#drawnAt < PACE) return
    this.#drawnAt = now
    this.#shown = true
    this.#terminal.write(`\r\x1b[K${text}`)
  }

  /** Takes the line away, before anything else is written. */
  clear(): void {
    if (this.#shown) this.#terminal?.write('\r\x1b[K')
    this.#shown = false
  }
}
