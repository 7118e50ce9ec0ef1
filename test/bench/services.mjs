// @ts-check
// The private servers of the tests, with more memory, and with what counts the statements.
import './typescript.mjs'

export async function startRedis() {
  const services = await import('../services/redis.ts')
  const server = await services.startRedis()
  return { url: server.url, port: server.port, stop: () => server.stop() }
}

/** @param {Record<string, string>} settings */
export async function startPostgres(settings = {}) {
  const services = await import('../services/postgres.ts')
  const server = await services.startPostgres({
    shared_buffers: '512MB',
    shared_preload_libraries: 'pg_stat_statements',
    ...settings,
  })
  return { url: server.url(), stop: () => server.stop() }
}

/** @param {Record<string, string>} settings */
export async function startMariadb(settings = {}) {
  const services = await import('../services/mariadb.ts')
  const server = await services.startMariadb({ 'innodb-buffer-pool-size': '512M', ...settings })
  return { url: server.url(), stop: () => server.stop() }
}
