import type { Store } from 'coatcheck'

/** For the suite: a store that lives in one process has no second connection. */
export const asTwo = <S extends Store>(store: S): [S, S] => [store, store]
