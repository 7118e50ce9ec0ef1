// A hot standby: it answers reads, of what it has replayed so far, and refuses writes.
import { PostgresStore } from 'coatcheck/stores/postgres'
import { expect, it, onTestFinished } from 'vitest'
import { within } from '../../support/deadlines.ts'
import { failure } from '../../support/failure.ts'
import { describeEngine } from '../../support/services/engines.ts'
import { startPostgres } from '../../support/services/postgres.ts'
import { until } from '../../support/services/process.ts'
import { postgresOf } from '../databases.ts'
import { proxiedPostgres } from '../proxied.ts'
import { call, NOW, record } from '../records.ts'

const short = () => ({ now: NOW, deadline: within(2000) })

describeEngine('postgresql', 'an address that leads to a standby', () => {
  const own = postgresOf(proxiedPostgres)

  it('shows no session that ended after the first write that it refused, and is used once it is promoted', async () => {
    const standby = await startPostgres({}, { standbyOf: own.server.port })
    onTestFinished(() => standby.stop())
    const atStandby = standby.pool()
    const address = own.server.proxy
    const pool = own.server.pool({ max: 2, connectionString: own.server.proxiedUrl() })
    const [store, elsewhere] = [new PostgresStore(pool), new PostgresStore(own.admin)]
    const one = record({ userId: '45' })
    expect(await store.create(one, call())).toBe('created')
    await until('the standby having it', async () =>
      expect((await atStandby.query('SELECT 1 FROM coatcheck_sessions WHERE id = $1', [one.key])).rowCount).toBe(1),
    )
    // It lags behind, as under load.
    await atStandby.query('SELECT pg_wal_replay_pause()')
    expect(await elsewhere.delete(one.key, call())).toBe(true)
    address.redirect(standby.port)
    address.sever()
    await address.heal()
    await until('a read at the standby', async () => expect(await store.read(one.key, call())).toEqual(one))

    await expect(store.create(record(), short())).rejects.toMatchObject({ outcome: 'not-applied' })
    const reads = Array.from({ length: 20 }, () => store.read(one.key, short()))
    const answers = [...reads, store.listUser('45', 'session', short())].map(read => failure(read))
    // Or that no connection became free in time, where others had to show what they lead to.
    expect(String((await Promise.all(answers)).map(({ cause }) => cause))).toContain('read-only')
    await expect(store.touch(one.key, NOW, NOW, short())).rejects.toMatchObject({ outcome: 'not-applied' })

    // Promoted, it replays what it has received, and keeps its connections.
    await atStandby.query('SELECT pg_promote()')
    await until('a login', async () => expect(await store.create(record(), short())).toBe('created'))
    expect(await store.read(one.key, call())).toBe(null)
  })
})
