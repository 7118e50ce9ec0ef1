// examples/watch.mjs with a channel of examples/channels.mjs over each store that processes share.
import { describeEngine } from '../support/services/engines.ts'
import { sharedMariadb } from '../support/services/mariadb.ts'
import { sharedPostgres } from '../support/services/postgres.ts'
import { startRedis } from '../support/services/redis.ts'
import { sqliteFile } from '../support/services/sqlite.ts'
import { streamsEnd } from './watch/scenes.ts'

describeEngine('redis', 'streams at four processes on Redis', () => streamsEnd(startRedis))
describeEngine('postgresql', 'streams at four processes on PostgreSQL', () =>
  streamsEnd(async () => {
    const server = await sharedPostgres()
    return { url: server.url(), stop: server.stop }
  }),
)
describeEngine('mariadb', 'streams at four processes on MariaDB', () =>
  streamsEnd(async () => {
    const server = await sharedMariadb()
    return { url: server.url(), stop: server.stop }
  }),
)
describeEngine('libsql', 'streams at four processes on SQLite', () =>
  streamsEnd(async () => {
    const { file, remove } = sqliteFile()
    return { url: `sqlite:${file}`, stop: remove }
  }),
)
