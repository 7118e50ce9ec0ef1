export type { SqlStoreOptions } from './sql/options.ts'
export type { PgClient, PgPool, PgQuery, PgResult } from './sql/postgres/driver.ts'
export type { PostgresJs, PostgresJsQuery, PostgresJsScope } from './sql/postgres/postgres-js.ts'
export { type PostgresOptions, PostgresStore } from './sql/postgres/store.ts'
