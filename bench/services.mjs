// @ts-check
// The private servers of the tests, with more memory, and with what counts the statements.

/** @param {string} name @returns {Promise<any>} */
async function service(name) {
  await import('./typescript.mjs')
  return import(`../test/support/services/${name}.ts`)
}

export async function startRedis() {
  const server = await (await service('redis')).startRedis()
  return {
    url: /** @type {string} */ (server.url),
    port: /** @type {number} */ (server.port),
    stop: () => server.stop(),
  }
}

export async function startPostgres() {
  const settings = { shared_buffers: '512MB', shared_preload_libraries: 'pg_stat_statements' }
  const server = await (await service('postgres')).startPostgres(settings)
  return { url: /** @type {string} */ (server.url()), stop: () => server.stop() }
}

export async function startMariadb() {
  const server = await (await service('mariadb')).startMariadb({ 'innodb-buffer-pool-size': '512M' })
  return { url: /** @type {string} */ (server.url()), stop: () => server.stop() }
}
