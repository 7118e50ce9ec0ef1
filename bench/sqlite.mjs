// @ts-check
// The SQLite drivers that this machine has.
import { createRequire } from 'node:module'

// better-sqlite3 is compiled for minutes; the tests have it in a folder of its own.
const drivers = createRequire(new URL('../test/support/drivers/package.json', import.meta.url))

/** @param {string} driver @param {string} file @returns {Promise<any>} */
export async function openSqlite(driver, file) {
  const module = driver === 'better-sqlite3' ? { default: drivers(driver) } : await import(driver)
  const Database = driver === 'node:sqlite' ? module.DatabaseSync : module.default
  const database = new Database(file)
  if (file !== ':memory:') database.exec('PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL')
  return database
}

export async function sqliteDrivers() {
  const found = []
  for (const driver of ['node:sqlite', 'better-sqlite3', 'libsql'])
    try {
      ;(await openSqlite(driver, ':memory:')).close()
      found.push(driver)
    } catch {}
  return found
}
