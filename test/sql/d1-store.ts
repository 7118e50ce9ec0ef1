// A D1 database with the store for it.
import { D1Store, type D1StoreOptions } from 'coatcheck/stores/d1'
import { inTurn } from '../../src/custom-store/connections.ts'
import { startD1 } from './d1.ts'

/** Starts one with an empty database. */
export async function startD1Store() {
  const { database, run, stop } = await startD1()
  return {
    /** A store; its tables are yet to be made. */
    open: (options?: D1StoreOptions) => inTurn([new D1Store(database, options)]),
    run,
    /** The first cell of the first row, as a number. */
    async number(sql: string) {
      const [answer] = await database.batch([database.prepare(sql).bind()])
      return Number(Object.values(answer!.results[0] as object)[0])
    },
    stop,
  }
}
export type D1StoreServer = Awaited<ReturnType<typeof startD1Store>>
