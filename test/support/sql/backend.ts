// What the guarantees ask of a database itself.
export const TABLES = ['coatcheck_sessions', 'coatcheck_sessions_users'] as const

/** Takes the table of sessions away: `run` runs a statement. */
export async function noTable(run: (sql: string) => unknown) {
  await run(`ALTER TABLE ${TABLES[0]} RENAME TO elsewhere`)
  return async () => run(`ALTER TABLE elsewhere RENAME TO ${TABLES[0]}`)
}
