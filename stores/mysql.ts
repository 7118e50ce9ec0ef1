export type { SqlStoreOptions } from './sql/base/schema.ts'
export type { MysqlConnection, MysqlPool, MysqlPromisePool } from './sql/mysql/client.ts'
export { MysqlStore } from './sql/mysql/store.ts'
