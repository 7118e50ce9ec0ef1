import { Failure, messageOf, plain } from './errors.ts'

/** The output could not be written, such as to a full disk. */
export class OutputFailed extends Failure {}

/** The reader is gone, as `head` is after ten lines. */
export class OutputClosed extends OutputFailed {}

export type Stream = Pick<NodeJS.WriteStream, 'write' | 'on'>

/** Standard output for results, standard error for everything else. */
export class Output {
  /** Whether results are JSON. */
  json = false
  readonly #out: Stream
  readonly #err: Stream
  #piece = ''

  constructor(out: Stream, err: Stream) {
    this.#out = out
    this.#err = err
    // Each write has its own answer; without a listener the same error would end the process.
    out.on('error', () => {})
    err.on('error', () => {})
  }

  /** A result: text for people, or an object as a line of JSON. */
  result(text: string, value: object): Promise<void> {
    this.line(text, value)
    return this.flush()
  }

  /** One of many lines; `flush` in between, but not after each: that would be slow. */
  line(text: string, value: object): void {
    // JSON.stringify escapes control characters up to U+001F only.
    this.#piece += `${this.json ? plain(JSON.stringify(value)) : text}\n`
  }

  /** @throws OutputClosed, or why it could not be written */
  flush(): Promise<void> {
    const piece = this.#piece
    this.#piece = ''
    return new Promise((resolve, reject) => {
      if (piece === '') return resolve()
      this.#out.write(piece, error => {
        if (!error) return resolve()
        const { code } = error as NodeJS.ErrnoException
        const isClosed = code === 'EPIPE' || code === 'ERR_STREAM_DESTROYED'
        reject(isClosed ? new OutputClosed() : new OutputFailed(`the output could not be written: ${messageOf(error)}`))
      })
    })
  }

  /** A line for people beside the result. */
  say(text: string): void {
    this.#err.write(`${text}\n`)
  }
}

const COUNT = new Intl.NumberFormat('en-US')
/** '1 session', '12,345 sessions'. */
export const counted = (count: number, what = 'session'): string =>
  `${COUNT.format(count)} ${what}${count === 1 ? '' : 's'}`
