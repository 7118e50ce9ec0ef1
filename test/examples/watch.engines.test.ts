// examples/watch.mjs with a channel of examples/channels.mjs over each store that processes share.
import pg from 'pg'
import { expect, it } from 'vitest'
import { postgresChannel } from '../../examples/channels.mjs'
import { describeEngine } from '../support/services/engines.ts'
import { sharedPostgres } from '../support/services/postgres.ts'
import { DATABASES } from '../support/services/shared-databases.ts'
import { streamsEnd } from './watch/scenes.ts'

for (const { engine, name, open } of DATABASES)
  describeEngine(engine, `streams at four processes on ${name}`, () => streamsEnd(open))

describeEngine('postgresql', 'a channel of PostgreSQL', () => {
  it('gives back the connection on which it could not listen', async () => {
    const server = await sharedPostgres()
    const pool = new pg.Pool({ connectionString: server.url(), max: 1 })
    await expect(postgresChannel(pool, 'no name').subscribe(() => {})).rejects.toThrow(/syntax error/)
    expect(pool.totalCount).toBe(0)
    await pool.end()
    await server.stop()
  })
})
