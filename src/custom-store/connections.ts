import type { Store, StoreCall } from '../contract/store.ts'

/** In ms: on a busy machine, thousands of calls at once wait for each other. */
const PATIENCE = 30_000

/** What the suite asks: two stores on one database, each with a connection of its own as two processes have, or one store. */
export type Connections<S extends Store = Store> = S | readonly [S, S]

export const storesOf = <S extends Store>(opened: Connections<S>): S[] => [opened].flat() as S[]

/** As one store: each call goes to the next of these connections, and has this time unless it names a deadline. */
export function inTurn<S extends Store>(stores: readonly S[]): S {
  let calls = 0
  return new Proxy(stores[0]!, {
    get(first, name) {
      if (typeof Reflect.get(first, name, first) !== 'function') return Reflect.get(first, name, first)
      return (...args: unknown[]) => {
        const call = args.at(-1) as StoreCall | undefined
        const isCall = typeof call?.now === 'number'
        if (isCall) args[args.length - 1] = { deadline: performance.now() + PATIENCE, ...call }
        const store = isCall ? stores[calls++ % stores.length]! : first
        return Reflect.apply(Reflect.get(store, name, store) as () => unknown, store, args)
      }
    },
  })
}
