import { modelTest, testStore } from 'coatcheck/custom-store/testing'
import { type LibsqlClient, LibsqlStore } from 'coatcheck/stores/libsql'
import fc from 'fast-check'
import { afterAll, beforeAll, describe, it } from 'vitest'
import { describeEngine } from '../../../services/engines.ts'
import { type SqldServer, startSqld } from '../../../services/sqld.ts'
import { patient } from '../../../support/sql/patient.ts'

// Each call is a request, some milliseconds of the machine, and the calls of a race come one after the other.
// Numeric IDs and text take the same statements: the races and the random cases of one of them are enough.
const LONG = { runs: 50, rounds: 12 }
const SHORT = { bigint: { runs: 2, rounds: 1 }, string: { runs: 10, rounds: 4 } }
const slow = (name: string, run: () => Promise<void>) => it(name, run, 120_000)

describeEngine('sqld', 'the store for libSQL on a network', () => {
  let server: SqldServer
  let client: LibsqlClient
  beforeAll(async () => {
    server = await startSqld()
    client = server.client()
  })
  afterAll(() => server?.stop())

  describe.each(['bigint', 'string'] as const)('with %s user IDs', userIds => {
    const table = `${userIds}_sessions`
    const { runs, rounds } = process.env.COATCHECK_LONG === '1' ? LONG : SHORT[userIds]
    const open = async () => {
      const store = new LibsqlStore(client, { userIds, table })
      await store.migrate()
      return patient(store)
    }
    const corrupt = async (_: unknown, key: string) => {
      await server.run(`UPDATE ${table} SET version = -1 WHERE id = '${key}'`)
    }
    const outage = async () => {
      await server.run(`ALTER TABLE ${table} RENAME TO elsewhere`)
      return () => server.run(`ALTER TABLE elsewhere RENAME TO ${table}`)
    }
    testStore(slow, open, undefined, { textUserIds: userIds === 'string', corrupt, outage, runs, rounds })
    slow('behaves like the reference model', () => modelTest(fc, open, undefined, { runs }))
  })
})
