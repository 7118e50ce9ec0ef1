// SQLite databases on a network: what tests of both have in common.
import { D1Store, type RemoteSqliteOptions } from 'coatcheck/stores/d1'
import { LibsqlStore } from 'coatcheck/stores/libsql'
import { patient } from '../support/sql/patient.ts'
import { startD1 } from './d1.ts'
import { startSqld } from './sqld.ts'

export const REMOTE_SQLITE = ['sqld', 'd1'] as const

export interface RemoteSqliteServer {
  /** A store; its tables are yet to be made. */
  open(options?: RemoteSqliteOptions): D1Store | LibsqlStore
  run(sql: string): Promise<unknown>
  /** The first cell of the first row, as a number. */
  number(sql: string): Promise<number>
  stop(): Promise<void>
}

/** Starts one with an empty database. */
export async function startRemoteSqlite(engine: (typeof REMOTE_SQLITE)[number]): Promise<RemoteSqliteServer> {
  if (engine === 'd1') {
    const { database, run, stop } = await startD1()
    const number = async (sql: string) => {
      const [answer] = await database.batch([database.prepare(sql).bind()])
      return Number(Object.values(answer!.results[0] as object)[0])
    }
    return { open: options => patient(new D1Store(database, options)), run, number, stop }
  }
  const server = await startSqld()
  const client = server.client()
  return {
    open: options => patient(new LibsqlStore(client, options)),
    run: sql => client.execute(sql),
    number: async sql => Number((await client.execute(sql)).rows[0]![0]),
    stop: () => server.stop(),
  }
}
