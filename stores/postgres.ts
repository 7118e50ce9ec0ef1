export type { SqlStoreOptions } from './sql/base/schema.ts'
export type { PgClient, PgPool } from './sql/postgres/pg.ts'
export type { PostgresJs, PostgresJsQuery, PostgresJsScope } from './sql/postgres/postgres-js.ts'
export { type PostgresOptions, PostgresStore } from './sql/postgres/store.ts'
