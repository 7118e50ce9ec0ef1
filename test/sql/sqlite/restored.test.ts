// A file of sessions that was restored from a backup, as docs/change-a-service.md says.
import { SessionManager } from 'coatcheck'
import { SqliteStore } from 'coatcheck/stores/sqlite'
import { expect, it } from 'vitest'
import { describeEngine } from '../../support/services/engines.ts'
import { openSqlite, sqliteFile } from '../../support/services/sqlite.ts'

describeEngine('libsql', 'a store that was restored from a backup', () => {
  it('has a session again that a logout or a new password has ended since, until invalidateAll ends all', async () => {
    const { file, remove } = sqliteFile()
    try {
      const before = openSqlite('libsql', file)
      await new SqliteStore(before).migrate()
      const service = new SessionManager({ store: new SqliteStore(before), rememberFor: '30d' })
      const [one, other] = [await service.create({ user }), await service.create({ user })]
      const token = await service.issueRememberToken(other)
      before.exec(`VACUUM INTO '${file}.backup'`)
      await service.destroy(one)
      await service.invalidateUser(42n, { minPasswordVersion: 2 })
      expect([await service.get(one.secret), await service.get(other.secret)]).toEqual([null, null])
      await service.close()
      before.close()

      const after = openSqlite('libsql', `${file}.backup`)
      const sessions = new SessionManager({ store: new SqliteStore(after), rememberFor: '30d' })
      for (const { secret } of [one, other]) expect((await sessions.get(secret))?.user?.name).toBe('ada')
      await sessions.invalidateAll()
      for (const { secret } of [one, other]) expect(await sessions.get(secret)).toBeNull()
      expect(await sessions.redeemRememberToken(token)).toBeNull()
      await sessions.close()
      after.close()
    } finally {
      remove()
    }
  })
})

const user = { id: 42n, name: 'ada', passwordVersion: 1 }
