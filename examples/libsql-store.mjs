// @ts-check
// Sessions in libSQL on a network (Turso, sqld) through @libsql/client: D1Store asks for a binding of D1, and a client has
// all that it takes.
import { D1Store } from 'coatcheck/stores/d1'

/**
 * @param {import('@libsql/client').Client} client made by createClient({ url, authToken, intMode: 'string' }): without the
 *   intMode it throws at integers above 2^53, and a damaged row would be an outage. Not for a file: the client leaves a
 *   statement that met a lock open, so take SqliteStore and the package libsql.
 * @param {ConstructorParameters<typeof D1Store>[1]} [options]
 */
export function libsqlStore(client, options) {
  return new D1Store(
    {
      prepare: sql => ({ bind: (...args) => ({ sql, args }) }),
      async batch(statements) {
        // A batch that only reads need not wait for writers.
        const mode = statements.every(({ sql }) => sql.startsWith('SELECT')) ? 'read' : 'write'
        const answers = await client.batch(statements, mode)
        return answers.map(({ columns, rows, rowsAffected }) => ({
          results: rows.map(row => Object.fromEntries(columns.map((name, i) => [name, row[i]]))),
          meta: { changes: rowsAffected },
        }))
      },
    },
    options,
  )
}
