import { Failure, messageOf, plain } from './errors.ts'

/** The output could not be written, such as to a full disk. */
export class OutputFailed extends Failure {}

export type Stream = Pick<NodeJS.WriteStream, 'write' | 'on'>

/** Standard output for results, standard error for everything else. */
export class Output {
  /** Whether results are JSON. */
  json = false
  readonly #out: Stream
  readonly #err: Stream
  #piece = ''
  #isRead = true

  constructor(out: Stream, err: Stream) {
    this.#out = out
    this.#err = err
    // Each write has its own answer; without a listener the same error would end the process.
    out.on('error', () => {})
    err.on('error', () => {})
  }

  /** A result: text for people, or an object as a line of JSON. */
  result(text: string, value: object): Promise<boolean> {
    this.line(text, value)
    return this.flush()
  }

  /** One of many lines; `flush` in between, but not after each: that would be slow. */
  line(text: string, value: object): void {
    // JSON.stringify escapes control characters up to U+001F only.
    this.#piece += `${this.json ? plain(JSON.stringify(value)) : text}\n`
  }

  /**
   * Answers whether anyone still reads; `head` is gone after ten lines, and has all it wants.
   * @throws OutputFailed
   */
  flush(): Promise<boolean> {
    const piece = this.#piece
    this.#piece = ''
    return new Promise((resolve, reject) => {
      if (piece === '' || !this.#isRead) return resolve(this.#isRead)
      this.#out.write(piece, error => {
        const { code } = (error ?? {}) as NodeJS.ErrnoException
        this.#isRead = code !== 'EPIPE' && code !== 'ERR_STREAM_DESTROYED'
        if (!error || !this.#isRead) resolve(this.#isRead)
        else reject(new OutputFailed(`the output could not be written: ${messageOf(error)}`))
      })
    })
  }

  /** A line for people beside the result, none beside JSON. */
  note(text: string): void {
    if (!this.json) this.say(text)
  }

  /** A line for people. */
  say(text: string): void {
    this.#err.write(`${text}\n`)
  }
}

const COUNT = new Intl.NumberFormat('en-US')
/** '1 session', '12,345 sessions'. */
export const counted = (count: number, what = 'session'): string =>
  `${COUNT.format(count)} ${what}${count === 1 ? '' : 's'}`
