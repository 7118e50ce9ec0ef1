export { type LibsqlAnswer, type LibsqlClient, type LibsqlQuery, LibsqlStore } from './sql/remote-sqlite/libsql.ts'
export type { RemoteSqliteOptions } from './sql/remote-sqlite/store.ts'
