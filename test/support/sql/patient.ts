import type { Store } from 'coatcheck'
import type { StoreCall } from 'coatcheck/custom-store'

/** How long a call may take that names no deadline, in ms: thousands at once wait for each other on a network. */
const PATIENCE = 110_000

/** A store whose calls have time on a busy machine, where no deadline is named. */
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
