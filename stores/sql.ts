export type { SqlOptions } from './sql/options.ts'
export { type PostgresOptions, PostgresStore } from './sql/postgres.ts'
export type { PgClient, PgPool, PgQuery, PgResult } from './sql/postgres-client.ts'
