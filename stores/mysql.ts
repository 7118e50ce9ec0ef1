export type { MysqlConnection, MysqlPool, MysqlPromisePool } from './sql/mysql/client.ts'
export { MysqlStore } from './sql/mysql/store.ts'
export type { SqlStoreOptions } from './sql/options.ts'
