// What clients did and were told: one entry per call, all on the machine's monotonic clock.
import type { Call } from './model.ts'

/** An instant of the machine's monotonic clock, in microseconds: the same for all processes. */
export const instant = (): number => Number(process.hrtime.bigint() / 1000n)

export interface Entry {
  readonly id: string
  /** Which client: a client makes one call after the other. */
  readonly client: string
  /** Which small world of users and keys the call is about; worlds have nothing in common. */
  readonly cell: number
  readonly call: Call
  readonly invoked: number
  /** When the client stops waiting. */
  readonly deadline: number
  /** When it was told. Absent: the client died before. */
  readonly answered?: number
  /** What it was told, as plain JSON. */
  readonly answer?: unknown
  /** In place of an answer: what a `SessionStoreError` said of the outcome. */
  readonly failed?: 'not-applied' | 'unknown'
  /** Why, as the store's log would have it. */
  readonly reason?: string
}

/** A time in which something held the engine or a client up. */
export interface Hold {
  readonly from: number
  readonly to: number
  /** `engine`: its processes stood still; `client`: that of this worker; `network`: what was sent waited. */
  readonly what: 'engine' | 'client' | 'network'
}

/** The lines of a worker's log, as entries: a line when a call begins, another when it is over. */
export function entriesOf(lines: readonly string[]): Entry[] {
  const entries = new Map<string, Entry>()
  for (const line of lines) {
    if (line === '') continue
    let part: Partial<Entry> & { id: string }
    try {
      part = JSON.parse(line)
    } catch {
      continue // a worker that was killed while it wrote its last line
    }
    entries.set(part.id, { ...entries.get(part.id), ...part } as Entry)
  }
  return [...entries.values()].filter(entry => entry.call !== undefined)
}
