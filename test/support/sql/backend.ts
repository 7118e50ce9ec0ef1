// What the guarantees and the suite ask of a database itself.
import type { TestStoreOptions } from 'coatcheck/custom-store/testing'

export const TABLES = ['coatcheck_sessions', 'coatcheck_sessions_users'] as const

/** Takes the table of sessions away: `run` runs a statement. */
export async function noTable(run: (sql: string) => unknown) {
  await run(`ALTER TABLE ${TABLES[0]} RENAME TO elsewhere`)
  return async () => void (await run(`ALTER TABLE elsewhere RENAME TO ${TABLES[0]}`))
}

/** How a record of it is damaged, and how its reads fail. */
export const damages = (run: (sql: string) => unknown): TestStoreOptions => ({
  corrupt: async (_, key) => void (await run(`UPDATE ${TABLES[0]} SET version = -1 WHERE id = '${key}'`)),
  outage: () => noTable(run),
})
