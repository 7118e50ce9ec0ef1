// The store that a service had before, for any of the three middlewares: it answers a callback, and without one a promise.
import expressSession from 'express-session'

export class OldConnectStore extends expressSession.Store {
  readonly records = new Map<string, string>()
  /** Before each call: a test may stop it here, or let it fail. */
  before: (verb: 'get' | 'set' | 'destroy', sid: string) => unknown = () => {}

  get(sid: string, callback?: unknown): any {
    return this.#answer(callback, 'get', sid, () => JSON.parse(this.records.get(sid) ?? 'null'))
  }

  set(sid: string, session: unknown, ...rest: unknown[]): any {
    const text = JSON.stringify(session)
    return this.#answer(rest.at(-1), 'set', sid, () => void this.records.set(sid, text))
  }

  destroy(sid: string, callback?: unknown): any {
    return this.#answer(callback, 'destroy', sid, () => void this.records.delete(sid))
  }

  #answer(callback: unknown, verb: 'get' | 'set' | 'destroy', sid: string, run: () => unknown): unknown {
    const answered = (async () => {
      await this.before(verb, sid)
      return run()
    })()
    if (typeof callback !== 'function') return answered
    return void answered.then(
      value => queueMicrotask(() => callback(null, value)),
      error => queueMicrotask(() => callback(error)),
    )
  }
}
