// The few methods of `pg` that the store uses: the client is the application's, and is typed by them.

/** A query as the store gives it to `pg`. */
export interface PgQuery {
  name?: string
  text: string
  values: unknown[]
  rowMode: 'array'
  query_timeout?: number
  types: { getTypeParser(): (text: string) => unknown }
}
/** The part of a result of `pg` that the store reads. */
export interface PgResult {
  // biome-ignore lint/suspicious/noExplicitAny: rows are what the query says, and their type is the application's to choose in pg
  rows: any[]
  rowCount: number | null
}
/** What the store uses of a connection of `pg`. */
export interface PgClient {
  query(query: PgQuery): Promise<PgResult>
  /** Since pg 8.23: what the server said last, `'I'` where no transaction is open. */
  getTransactionStatus?(): string | null
  release(destroy?: boolean): void
  on(event: 'error', listener: (error: Error) => void): unknown
  removeListener(event: 'error', listener: (error: Error) => void): unknown
}
/** A `pg.Pool`, or anything with the same `connect()`. */
export interface PgPool {
  connect(): Promise<PgClient>
}
