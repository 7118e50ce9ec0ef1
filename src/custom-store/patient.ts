import type { Store, StoreCall } from '../contract/store.ts'

/** In ms: on a busy machine, thousands of calls at once wait for each other. */
const PATIENCE = 30_000

/** A store whose calls have this time unless they name a deadline. */
export const patient = <S extends Store>(store: S): S =>
  new Proxy(store, {
    get(target, name) {
      const member = Reflect.get(target, name, target)
      if (typeof member !== 'function') return member
      return (...args: unknown[]) => {
        const call = args.at(-1) as StoreCall | undefined
        if (typeof call?.now === 'number' && call.deadline === undefined)
          args[args.length - 1] = { ...call, deadline: performance.now() + PATIENCE }
        return member.apply(target, args)
      }
    },
  })
