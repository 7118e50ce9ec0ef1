interface Rule {
  /** The verbs that take a function, and at which position. */
  readonly changes: Readonly<Record<string, number>>
  /** Methods that return no promise. */
  readonly except?: readonly string[]
}

/**
 * Lets every verb of a class refuse a callback where it takes none: users of express-session and Passport pass one. If
 * it were ignored it would never be called, so that a request hangs, or goes on before the logout is done. Thrown at
 * once, not as a rejection: such a caller awaits nothing, and an unhandled rejection ends the process.
 */
export function refuseCallbacks(owner: string, prototype: object, { changes, except = [] }: Rule): void {
  for (const [verb, { value: method }] of Object.entries(Object.getOwnPropertyDescriptors(prototype))) {
    if (typeof method !== 'function' || verb === 'constructor' || except.includes(verb)) continue
    const position = changes[verb] ?? null
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
