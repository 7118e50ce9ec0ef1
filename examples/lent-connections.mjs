// @ts-check
// Pools for PostgresStore of the connections that Knex and Sequelize lend (docs/stores/postgresql.md):
// new PostgresStore(fromKnex(knex)).

/** @param {any} knex */
export const fromKnex = knex => ({
  async connect() {
    const client = await knex.client.acquireConnection()
    client.release = (/** @type {unknown} */ isBroken) => {
      client.__knex__disposed = isBroken && 'given up by a session' // Knex closes it
      knex.client.releaseConnection(client)
    }
    return client
  },
})

/** @param {any} sequelize */
export const fromSequelize = ({ connectionManager }) => ({
  async connect() {
    const client = await connectionManager.getConnection({ type: 'write' })
    client.release = (/** @type {unknown} */ isBroken) =>
      connectionManager[isBroken ? 'destroyConnection' : 'releaseConnection'](client)
    return client
  },
})
