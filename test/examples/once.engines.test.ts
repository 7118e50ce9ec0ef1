// examples/once.mjs over each store that processes share. What the store does not decide is asked of one.
import { describeEngine } from '../support/services/engines.ts'
import { sharedMariadb } from '../support/services/mariadb.ts'
import { sharedPostgres } from '../support/services/postgres.ts'
import { startRedis } from '../support/services/redis.ts'
import { sqliteFile } from '../support/services/sqlite.ts'
import { oneRefresh, refreshScenes } from './refresh/scenes.ts'

describeEngine('redis', 'one refresh over four processes on Redis', () => refreshScenes(startRedis))
describeEngine('libsql', 'one refresh over four processes on SQLite', () =>
  oneRefresh(async () => {
    const { file, remove } = sqliteFile()
    return { url: `sqlite:${file}`, stop: remove }
  }),
)
describeEngine('postgresql', 'one refresh over four processes on PostgreSQL', () =>
  oneRefresh(async () => {
    const server = await sharedPostgres()
    return { url: server.url(), stop: server.stop }
  }),
)
describeEngine('mariadb', 'one refresh over four processes on MariaDB', () =>
  oneRefresh(async () => {
    const server = await sharedMariadb()
    return { url: server.url(), stop: server.stop }
  }),
)
