// @ts-check
// The SQLite drivers that this machine has.

/** @param {string} driver @param {string} file @returns {Promise<any>} */
export async function openSqlite(driver, file) {
  const module = await import(driver)
  const Database = driver === 'node:sqlite' ? module.DatabaseSync : module.default
  const database = new Database(file)
  if (file !== ':memory:') database.exec('PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL')
  return database
}

export async function sqliteDrivers() {
  const drivers = []
  for (const driver of ['better-sqlite3', 'libsql', 'node:sqlite'])
    try {
      ;(await openSqlite(driver, ':memory:')).close()
      drivers.push(driver)
    } catch {}
  return drivers
}
