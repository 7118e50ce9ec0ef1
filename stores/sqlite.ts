export type { SqlStoreOptions } from './sql/options.ts'
export type { SqliteDatabase, SqliteStatement } from './sql/sqlite/client.ts'
export { SqliteStore } from './sql/sqlite/store.ts'
