// A `pg.Pool`.
import { bind, type Outcome, type Values } from '../base/engine.ts'
import { type Driver, NEVER } from '../base/pool.ts'
import { unusable } from '../base/retry.ts'
import { cancelStatement } from './cancel.ts'
import { bounds, DIALECT, failureOf, ISOLATION, Statements } from './dialect.ts'

/** The part of a client of `pg` that the store uses. */
export interface PgClient {
  // biome-ignore lint/suspicious/noExplicitAny: pg types queries and results by what the application asks for
  query(query: any, answer: (error: any, result: any) => void): unknown
  release(destroy?: boolean): void
  on(event: 'error', listener: (error: Error) => void): unknown
  removeListener(event: 'error', listener: (error: Error) => void): unknown
  /** Since pg 8.23: the server's last status, `'I'` if no transaction is open. */
  getTransactionStatus?(): string | null
}
/** The part of a `pg.Pool` that the store uses. */
export interface PgPool {
  // biome-ignore lint/suspicious/noExplicitAny: pg's own types of clients
  connect(answer: (error: any, client?: any) => void): unknown
}

// Cells as text, because the application may have told pg to parse numbers, which would round them.
const asText = (text: string) => text
const TYPES = { getTypeParser: () => asText }
// Without a listener a lost connection ends the process. The query's own callback tells us about it.
const ignore = () => {}
/** Pools that have our listener: several stores may share one. */
const LISTENED = new WeakSet<PgPool>()

export function pgDriver(pool: PgPool, prepare: boolean): Driver<PgClient> {
  const { options, on } = pool as { options?: { query_timeout?: unknown; stream?: unknown }; on?: unknown }
  const statements = new Statements(prepare)
  // The pool emits the error of an idle connection that is lost.
  if (typeof on === 'function' && !LISTENED.has(pool)) {
    LISTENED.add(pool)
    on.call(pool, 'error', ignore)
  }
  return {
    dialect: DIALECT,
    commit: 'COMMIT',
    rollBack: 'ROLLBACK',
    begin: ms => [`BEGIN ${ISOLATION}; ${bounds(ms)}`],
    // With a callback: a promise resolves later, and an error of the connection before that would meet no listener.
    connect(answer) {
      const taken = (error: unknown, client?: PgClient) => {
        if (client !== undefined && typeof client.on !== 'function')
          return answer(new TypeError('PostgresStore expects a pg.Pool, whose connect() gives clients of pg'))
        client?.on('error', ignore)
        answer(error, client)
      }
      const given = pool.connect(taken) as PromiseLike<PgClient> | undefined
      // A pool that an application has put around its own may know promises alone.
      given?.then?.(client => taken(null, client), taken)
    },
    release(client, destroy) {
      // A destroyed connection keeps the listener, since it may still emit an error.
      if (!destroy) client.removeListener('error', ignore)
      client.release(destroy)
    },
    send(client: PgClient, sql: string, values: Values, answer: (error: unknown, outcome?: Outcome) => void) {
      // Otherwise no session would be found in the rows, and lists would be empty.
      if ((client as { binary?: unknown }).binary)
        throw unusable('pg was told to read values as binary: the store needs them as text')
      const compiled = statements.compile(sql)
      const query = {
        text: compiled.text,
        values: bind(compiled, values),
        types: TYPES,
        ...(compiled.name !== '' && { name: compiled.name }),
        // The pool's own timeout would leave the statement running at the server.
        ...(options?.query_timeout !== undefined && { query_timeout: NEVER }),
      }
      client.query(query, (error, result) => {
        if (!error) return answer(null, { rows: result.rows, changed: result.rowCount ?? 0 })
        statements.learn(error)
        answer(error)
      })
    },
    cancel: client => cancelStatement(client, options?.stream),
    isOpen: client => (client.getTransactionStatus?.() ?? 'I') !== 'I',
    failureOf,
    isReplica: 'SELECT pg_is_in_recovery()::int AS replica',
  }
}

/** Checks that this is a pool of `pg`. @throws TypeError that says what is expected */
export function checkPgPool(pool: PgPool): PgPool {
  const given = pool as unknown as Record<string, unknown> | null | undefined
  // mysql2 has getConnection(), a single pg.Client has no pool to take a second connection from.
  if (typeof given?.connect !== 'function' || 'getConnection' in given || 'processID' in given)
    throw new TypeError(
      'PostgresStore expects a pg.Pool: an object whose connect() gives a client; or the sql of postgres',
    )
  return pool
}
