// SQLite drivers by name, and files for them in a temporary folder.
import { rmSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import type { SqliteDatabase } from 'coatcheck/stores/sqlite'
import { memoryFolder } from './memory-folder.ts'

export const SQLITE_DRIVERS = ['libsql', 'better-sqlite3', 'node:sqlite'] as const
export type SqliteDriver = (typeof SQLITE_DRIVERS)[number]
export type OpenDatabase = SqliteDatabase & { close(): unknown }

/** Opens a file (or `:memory:`) with a driver that this machine has. */
export function openSqlite(driver: SqliteDriver, file: string, mode: 'WAL' | 'DELETE' = 'WAL'): OpenDatabase {
  const from = driver === 'better-sqlite3' ? new URL('../drivers/package.json', import.meta.url) : import.meta.url
  const loaded = createRequire(from)(driver)
  const Database = driver === 'node:sqlite' ? loaded.DatabaseSync : loaded
  const database: OpenDatabase = new Database(file)
  if (file !== ':memory:') database.exec(`PRAGMA journal_mode = ${mode}`)
  return database
}

/** A path for a database in a folder of its own, and how to remove both. */
export function sqliteFile(): { file: string; remove(): void } {
  const folder = memoryFolder('lite')
  return { file: join(folder, 'sessions.db'), remove: () => rmSync(folder, { recursive: true, force: true }) }
}
