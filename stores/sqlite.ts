export type { SqlStoreOptions } from './sql/base/schema.ts'
export type { SqliteDatabase, SqliteStatement } from './sql/sqlite/driver.ts'
export { SqliteStore } from './sql/sqlite/store.ts'
