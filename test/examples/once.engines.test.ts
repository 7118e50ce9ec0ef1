// examples/once.mjs over each database that processes share.

import { describeEngine } from '../support/services/engines.ts'
import { sharedMariadb } from '../support/services/mariadb.ts'
import { sharedPostgres } from '../support/services/postgres.ts'
import { startRedis } from '../support/services/redis.ts'
import { refreshScenes } from './refresh/scenes.ts'

describeEngine('redis', 'one refresh over four processes on Redis', () => refreshScenes(startRedis))
describeEngine('postgresql', 'one refresh over four processes on PostgreSQL', () =>
  refreshScenes(async () => {
    const server = await sharedPostgres()
    return { url: server.url(), stop: server.stop }
  }),
)
describeEngine('mariadb', 'one refresh over four processes on MariaDB', () =>
  refreshScenes(async () => {
    const server = await sharedMariadb()
    return { url: server.url(), stop: server.stop }
  }),
)
