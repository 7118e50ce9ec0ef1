export type { MysqlConnection, MysqlPool, MysqlPromisePool } from './sql/mysql/client.ts'
export { MysqlStore } from './sql/mysql/store.ts'
export type { SqlOptions } from './sql/options.ts'
export type { PgClient, PgPool } from "./sql/postgres/pg.ts"
export type { PostgresJs, PostgresJsQuery, PostgresJsScope } from './sql/postgres/postgres-js.ts'
export { type PostgresOptions, PostgresStore } from './sql/postgres/store.ts'
export { type D1Answer, type D1Client, type D1Query, D1Store } from './sql/remote-sqlite/d1.ts'
export {
  type LibsqlAnswer,
  type LibsqlClient,
  type LibsqlQuery,
  LibsqlStore,
} from './sql/remote-sqlite/libsql.ts'
export type { RemoteSqliteOptions } from './sql/remote-sqlite/store.ts'
export type { SqliteDatabase, SqliteStatement } from './sql/sqlite/client.ts'
export { SqliteStore } from './sql/sqlite/store.ts'
