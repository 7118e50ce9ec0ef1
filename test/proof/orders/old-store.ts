// The store of the service that was there before: each call waits until it is chosen, and what was given up here may still be
// done there.
import type { World } from './world.ts'

export class OldStore {
  readonly records = new Map<string, string>()
  readonly #world: World
  readonly #sid: string
  readonly #text: string

  constructor(world: World, sid: string, session: object) {
    this.#world = world
    this.#sid = sid
    this.#text = JSON.stringify(session)
    this.put()
  }

  /** Has its session, again. */
  put(): void {
    this.records.set(this.#sid, this.#text)
  }

  async do<T>(what: string, run: () => T): Promise<T> {
    return this.#world.callback(`the old store ${what}`, run, Number.POSITIVE_INFINITY)
  }

  get(sid: string, callback: (error: unknown, session?: unknown) => void): void {
    const read = () => JSON.parse(this.records.get(sid) ?? 'null')
    this.do('is read', read).then(session => callback(null, session), callback)
  }

  destroy(sid: string, callback: (error?: unknown) => void): void {
    this.do('ends it', () => void this.records.delete(sid)).then(() => callback(null), callback)
  }
}
