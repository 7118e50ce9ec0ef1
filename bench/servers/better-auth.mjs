// @ts-check
// better-auth's sessions, without its password check: a login is an endpoint of a plugin that makes a session for a user
// who is there already. Its other endpoints are its own.

import { SECRET } from './frameworks.mjs'
import { valueIn } from './handlers.mjs'
import { pathOf, send, userOf } from './serve.mjs'

/** As many as the logins of a round go through. */
export const USERS = 2000

/** @param {number} id */
const row = id => ({
  id: String(id),
  name: `user ${id}`,
  email: `user${id}@example.com`,
  emailVerified: true,
  createdAt: new Date(),
  updatedAt: new Date(),
})

/** A database of Maps is a list of rows for each table. */
export const memoryTables = () => ({
  user: Array.from({ length: USERS }, (_, at) => row(at + 1)),
  session: [],
  account: [],
  verification: [],
})

/** What concerns no session. */
export const QUIET = {
  secret: SECRET,
  baseURL: 'http://127.0.0.1',
  telemetry: { enabled: false },
  logger: { disabled: true },
}

/**
 * @param {Record<string, any>} options `database` or `secondaryStorage`
 * @param {{ migrate?: boolean }} [how] whether its tables have to be made and filled
 * @returns {Promise<import('./serve.mjs').Handler>}
 */
export async function betterAuthServer(options, { migrate = false } = {}) {
  const [{ betterAuth }, { createAuthEndpoint }, { setSessionCookie }, { fromNodeHeaders }] = await Promise.all([
    import('better-auth'),
    import('better-auth/api'),
    import('better-auth/cookies'),
    import('better-auth/node'),
  ])
  const logIn = createAuthEndpoint('/bench/login', { method: 'POST', requireHeaders: true }, async context => {
    const user = row(/** @type {any} */ (context).body.id)
    const session = await context.context.internalAdapter.createSession(user.id)
    await setSessionCookie(context, { session, user })
    return context.json('ok')
  })
  const settings = /** @type {any} */ ({
    ...QUIET,
    plugins: [{ id: 'bench', endpoints: { logIn } }],
    session: { expiresIn: 1800, additionalFields: { value: { type: 'number', required: false } } },
    ...options,
  })
  if (migrate) {
    const { getMigrations } = await import('better-auth/db/migration')
    await (await getMigrations(settings)).runMigrations()
  }
  const auth = /** @type {any} */ (betterAuth(settings))
  const { adapter } = await auth.$context
  if (migrate)
    for (let id = 1; id <= USERS; id += 1) await adapter.create({ model: 'user', data: row(id), forceAllowId: true })

  return async (request, response) => {
    const headers = fromNodeHeaders(request.headers)
    if (request.method === 'GET') {
      const found = await auth.api.getSession({ headers })
      return send(response, JSON.stringify(found ? { id: Number(found.user.id), name: found.user.name } : null))
    }
    const path = pathOf(request.url)
    const how = { headers, returnHeaders: true }
    const answer =
      path === '/login'
        ? await auth.api.logIn({ ...how, body: userOf(request.url) })
        : path === '/write'
          ? await auth.api.updateSession({ ...how, body: { value: valueIn(request.url) } })
          : path === '/logout'
            ? await auth.api.signOut(how)
            : await auth.api.revokeSessions(how)
    response.setHeader('Set-Cookie', answer.headers.getSetCookie())
    send(response, '"ok"')
  }
}
