// The stores that processes share.
import { sharedMariadb } from './mariadb.ts'
import { sharedPostgres } from './postgres.ts'
import { startRedis } from './redis.ts'
import { sqliteFile } from './sqlite.ts'

const opened = async (start: () => Promise<{ url(): string; stop(): unknown }>) => {
  const server = await start()
  return { url: server.url(), stop: server.stop }
}

export const DATABASES = [
  { engine: 'redis', name: 'Redis', open: startRedis },
  { engine: 'postgresql', name: 'PostgreSQL', open: () => opened(sharedPostgres) },
  { engine: 'mariadb', name: 'MariaDB', open: () => opened(sharedMariadb) },
  {
    engine: 'libsql',
    name: 'SQLite',
    async open() {
      const { file, remove } = sqliteFile()
      return { url: `sqlite:${file}`, stop: remove }
    },
  },
] as const
