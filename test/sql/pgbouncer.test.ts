// A pooler in transaction mode: each statement of ours may meet another connection to the server, and 1.18 of Debian knows
// no prepared statements.

import { modelTest } from 'coatcheck/custom-store/testing'
import { PostgresStore } from 'coatcheck/stores/postgres'
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { within } from '../support/deadlines.ts'
import { describeEngine } from '../support/services/engines.ts'
import { startPostgres } from '../support/services/postgres.ts'
import { until } from '../support/services/process.ts'
import { started } from '../support/started.ts'
import { postgresOf } from './databases.ts'
import { startPgbouncer } from './pgbouncer.ts'
import { call, NOW, newKey, record } from './records.ts'
import { partOfTheSuite } from './suite.ts'

const SERVERS = 5

describeEngine('pgbouncer', 'the PostgreSQL store through pgbouncer in transaction mode', () => {
  const own = postgresOf(startPostgres)
  const pooler = started(async () => {
    const server = await startPgbouncer(own.server, SERVERS)
    // More clients than connections to the server, so that they do share them.
    const clients = () => server.pool({ max: 4 * SERVERS })
    return { ...server, clients, pools: [clients(), clients()] as const }
  })

  partOfTheSuite(() => ({
    stores: pooler().pools.map(pool => new PostgresStore(pool)) as [PostgresStore, PostgresStore],
    run: sql => own.admin.query(sql),
  }))

  it('behaves like the reference model where no statement is to be prepared', () =>
    modelTest(fc, () => new PostgresStore(pooler().clients(), { prepare: false }), undefined, { runs: 10 }))

  it('answers many reads and writes at once though their prepared statements are refused', async () => {
    for (let round = 0; round < 3; round++) {
      // A store that has not met the pooler yet: its first statements are all prepared, on connections that know others.
      const store = new PostgresStore(pooler().clients())
      const records = Array.from({ length: 40 }, (_, i) => record({ userId: `${1000 * round + i}` }))
      await Promise.all(records.map(one => store.create(one, call())))
      const read = ({ key }: { key: string }) => store.read(key, call())
      expect(await Promise.all(records.map(read))).toEqual(records)
      for (const one of records.slice(0, 10)) expect(await read(one)).toEqual(one)
    }
  })

  it('ends at the server what its readers have given up, and answers when the table is free', async () => {
    const store = new PostgresStore(pooler().pool({ max: 2 }))
    const one = record({ userId: '99' })
    await store.create(one, { now: NOW })
    const release = await own.locks.hold()
    const readers = Array.from({ length: 10 }, () => store.read(newKey(), { now: NOW, deadline: within(300) }))
    for (const { status } of await Promise.allSettled(readers)) expect(status).toBe('rejected')
    await own.locks.nothingWaits().finally(release)
    await until('an answer', async () =>
      expect(await store.read(one.key, { now: NOW, deadline: within(1000) })).toEqual(one),
    )
  })
})
