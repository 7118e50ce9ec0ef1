/** For `update`, which takes a function: at which position. */
interface Rule {
  readonly update: number
  /** Methods that return no promise. */
  readonly except?: readonly string[]
}

/**
 * Lets every verb of a class refuse a function where it takes none, as whoever knows express-session or Passport passes
 * it. Ignored, it would never be called: a request that hangs, or a log-out that nobody waits for. Thrown at once, not as
 * a rejection: nobody awaits a verb that was given a callback, and an unhandled rejection ends the process.
 */
export function refuseCallbacks(owner: string, prototype: object, { update, except = [] }: Rule): void {
  for (const [verb, { value: method }] of Object.entries(Object.getOwnPropertyDescriptors(prototype))) {
    if (typeof method !== 'function' || verb === 'constructor' || except.includes(verb)) continue
    const position = verb === 'update' ? update : null
    const checked = {
      [verb](this: unknown, one: unknown, two: unknown, three: unknown): unknown {
        if (
          (typeof one === 'function' && position !== 0) ||
          (typeof two === 'function' && position !== 1) ||
          typeof three === 'function'
        )
          throw new TypeError(`${owner}.${verb}: takes no callback, it returns a promise: await it`)
        return method.call(this, one, two, three)
      },
    }
    Object.defineProperty(prototype, verb, { value: checked[verb], writable: true, configurable: true })
  }
}
