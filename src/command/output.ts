import { Failure, messageOf, plain } from './errors.ts'

/** The reader is gone, as `head` is after ten lines. */
export class OutputClosed extends Error {}

/** The output could not be written, such as to a full disk. */
export class OutputFailed extends Failure {}

/** A piece of this many characters is written at once: a line each would be slow. */
const PIECE = 16_384

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

  /** One of many lines; `flush` in between. */
  line(text: string, value: object): void {
    // JSON.stringify escapes control characters up to U+001F only.
    this.#piece += this.json ? JSON.stringify(value).replaceAll(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, escaped) : text
    this.#piece += '\n'
  }

  /** Whether so much is waiting that it should be written. */
  get isFull(): boolean {
    return this.#piece.length >= PIECE
  }

  /** @throws OutputClosed, or why it could not be written */
  flush(): Promise<void> {
    const piece = this.#piece
    this.#piece = ''
    return new Promise((resolve, reject) => {
      if (piece === '') return resolve()
      this.#out.write(piece, error => {
        if (!error) resolve()
        else if ('code' in error && (error.code === 'EPIPE' || error.code === 'ERR_STREAM_DESTROYED'))
          reject(new OutputClosed())
        else reject(new OutputFailed(`the output could not be written: ${messageOf(error)}`))
      })
    })
  }

  /** A line for people beside the result. */
  say(text: string): void {
    this.#err.write(`${text}\n`)
  }
}

/** Two escapes for a character beyond U+FFFF, as JSON has them. */
const escaped = (character: string) =>
  character
    .split('')
    .map(unit => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
    .join('')

/** Cells, each as wide as its column; only the last one may be of any length. */
export const row = (cells: readonly string[], widths: readonly number[]): string =>
  cells
    .map((cell, at) => (at === cells.length - 1 ? plain(cell) : plain(cell).padEnd(widths[at]!)))
    .join('  ')
    .trimEnd()

const COUNT = new Intl.NumberFormat('en-US')
/** '1 session', '12,345 sessions'. */
export const counted = (count: number, what = 'session'): string =>
  `${COUNT.format(count)} ${what}${count === 1 ? '' : 's'}`
