// @ts-check
// The endpoints of the example service, as a listener for node:http.
import { SessionError, SessionStoreError, stringify } from 'coatcheck'
import { deviceBound, deviceOf } from 'coatcheck/device-bound'
import { nodeVisits } from 'coatcheck/node'
import { Aborted, flagField, HttpError, mediaType, readForm, readJson, textField } from './body.mjs'
import { asset, renderPage } from './page.mjs'

/** How long after a login with the password its session may change the password. */
const FRESH = '15m'

/** How long the old ID leads to the session after `regenerate`: requests that were under way do not fail. */
const GRACE = '30s'

/**
 * What a session keeps for us: the device's own label, and when it last got a new ID, epoch ms.
 * @typedef {{ label: string, rotatedAt?: number }} Data
 */

/** @typedef {import('coatcheck').SessionManager<Data>} Sessions */

/**
 * @typedef {object} Call one request
 * @property {import('node:http').IncomingMessage} request
 * @property {import('coatcheck').Visit<Data>} visit
 * @property {string} key the last part of /sessions/KEY
 */

/** @typedef {{ status: number, headers: Record<string, string>, body: string | Buffer }} Answer */

/** How many sessions GET /sessions answers: a user may log in a thousand times. */
const MOST_LISTED = 100

/**
 * The user agent names the device in the list of sessions: at most 256 characters, no control characters.
 * @param {import('node:http').IncomingMessage} request
 */
const labelOf = request =>
  (request.headers['user-agent'] ?? '')
    .replace(/\p{Cc}/gu, '')
    .slice(0, 256)
    .toWellFormed()

/**
 * @param {unknown} value
 * @param {number} [status]
 * @param {Record<string, string>} [headers]
 * @returns {Answer}
 */
const json = (value, status = 200, headers = {}) => ({
  status,
  // No cache may keep what depends on a session. `nodeVisits` says so only if a session was looked at.
  headers: { 'Content-Type': 'application/json; charset=utf-8', 'Cache-Control': 'no-store', ...headers },
  body: `${stringify(value)}\n`,
})

/** @type {() => Answer} for a plain form: the browser goes on to the page */
const toPage = () => ({ status: 303, headers: { Location: '/', 'Cache-Control': 'no-store' }, body: '' })

/** @param {import('node:http').IncomingMessage} request */
const isForm = request => mediaType(request) === 'application/x-www-form-urlencoded'

const wrongPassword = () => new HttpError(401, 'invalid_credentials', 'The name or the password is wrong.')

/**
 * @param {Sessions} sessions
 * @param {import('./users.mjs').Users} users
 */
function endpoints(sessions, users) {
  /**
   * Ends what the user's old password began. Without this a password change is not complete, so it is noted in the
   * user's row: the same request again, or the next login, finishes what an outage interrupted.
   * @param {import('./users.mjs').User} user
   * @param {import('coatcheck').UserSession<Data, 'bigint'>} session
   */
  async function endOthers(user, session) {
    await sessions.invalidateUser(user.id, { except: session, minPasswordVersion: user.passwordVersion })
    users.othersEnded(user)
  }

  return {
    /** @param {Call} call */
    async login({ request, visit }) {
      // First the guards: a page of another origin hears nothing about names and passwords.
      await visit.get({ touch: false })
      const fromForm = isForm(request)
      const body = fromForm ? Object.fromEntries(await readForm(request)) : await readJson(request)
      const name = textField(body, 'username')
      const password = textField(body, 'password')
      const remember = fromForm ? body.remember !== undefined : flagField(body, 'remember')
      const user = await users.authenticate(name, password)
      if (!user && fromForm) return renderPage({ state: 'out', failed: name })
      if (!user) throw wrongPassword()
      // `user` has the password version that was read with the hash: a change that is faster refuses this login.
      const session = await visit.logIn({ user, remember, data: { label: labelOf(request) } })
      if (user.endOthers) await endOthers(user, session)
      return fromForm ? toPage() : json('Logged in.')
    },

    /** @param {Call} call */
    async profile({ visit }) {
      const session = await visit.get()
      return json(session?.user ?? null)
    },

    /** @param {Call} call */
    async logout({ request, visit }) {
      if (isForm(request) && (await visit.get())) await visit.checkCsrf((await readForm(request)).get('csrf'))
      await visit.logOut()
      return isForm(request) ? toPage() : json('Logged out.')
    },

    /** @param {Call} call */
    async password({ request, visit }) {
      // Not with a session that a remember token started, nor on a device where the last login was long ago.
      const before = await visit.requireUser({ freshWithin: FRESH })
      const body = await readJson(request)
      const oldPassword = textField(body, 'oldPassword')
      const newPassword = textField(body, 'newPassword')
      if ([...newPassword].length < 8 || newPassword.length > 1024 || !newPassword.isWellFormed())
        throw new HttpError(400, 'invalid_fields', '"newPassword" has to have 8 to 1024 characters.')

      // And not without the old password: a stolen session alone changes nothing.
      const { name } = before.user
      const proven = await users.authenticate(name, oldPassword)
      const changed = proven
        ? await users.changePassword(proven, newPassword)
        : await users.authenticate(name, newPassword).then(user => (user?.endOthers ? user : null))
      if (!changed) throw new HttpError(401, 'invalid_credentials', 'The old password is wrong.')
      try {
        const session = await visit.logIn({ user: changed, data: data => data })
        await endOthers(changed, session)
      } catch (error) {
        if (!(error instanceof SessionError && error.status === 503)) throw error
        throw new HttpError(
          503,
          'sessions_not_ended',
          'The password is changed, but other devices may still be logged in. Send the same request again.',
        )
      }
      return json('Password changed. All other devices are logged out.')
    },

    /** @param {Call} call */
    async listSessions({ request, visit }) {
      const { key, user, data } = await visit.requireUser()
      // A session that a remember token began has no label yet.
      if (data.label === '' && labelOf(request) !== '') await visit.update({ label: labelOf(request) })
      const live = await sessions.list(user.id)
      return json(
        // The latest seen come first.
        live.slice(0, MOST_LISTED).map(session => ({
          key: session.key,
          label: session.data.label,
          createdAt: session.createdAt,
          seenAt: session.seenAt,
          current: session.key === key,
        })),
      )
    },

    /** @param {Call} call */
    async session({ visit }) {
      // A page that polls is not a user who comes back: the session is not extended.
      const session = await visit.get({ touch: false })
      return json(session?.user ? timesOf(session) : null)
    },

    /** @param {Call} call */
    async rotate({ request, visit }) {
      await visit.requireUser()
      if (isForm(request)) await visit.checkCsrf((await readForm(request)).get('csrf'))
      if (!(await visit.regenerate({ grace: GRACE })))
        throw new HttpError(401, 'unauthenticated', 'The session has ended.')
      await visit.update({ rotatedAt: Date.now() })
      return isForm(request) ? toPage() : json('The session has a new ID.')
    },

    /** @param {Call} call */
    async endSession({ visit, key }) {
      const current = await visit.requireUser()
      if (key === current.key) await visit.logOut()
      else if (!(await sessions.revoke(current.user.id, key)))
        throw new HttpError(404, 'not_found', 'You have no such session.')
      return json('Session ended.')
    },

    /** @param {Call} call */
    async endAllSessions({ request, visit }) {
      const { user } = await visit.requireUser()
      if (isForm(request)) await visit.checkCsrf((await readForm(request)).get('csrf'))
      await sessions.invalidateUser(user.id)
      await visit.logOut()
      return isForm(request) ? toPage() : json('Logged out everywhere.')
    },

    /** @param {Call} call */
    async page({ visit }) {
      try {
        const session = await visit.get()
        if (!session?.user) return renderPage({ state: 'out' })
        const { user } = session
        return renderPage({ state: 'in', user, csrf: (await visit.csrfToken()) ?? '', times: timesOf(session) })
      } catch (error) {
        if (error instanceof SessionStoreError) return renderPage({ state: 'unavailable' })
        throw error
      }
    },
  }
}

/**
 * The session's times, epoch ms. `seenAt` is written down at most once a minute.
 * @typedef {ReturnType<typeof timesOf>} Times
 * @param {import('coatcheck').Session<Data, 'bigint'>} session
 */
const timesOf = session => {
  const { createdAt, seenAt, expiresAt, absoluteExpiresAt, remembered, data } = session
  return {
    now: Date.now(),
    createdAt,
    remembered,
    seenAt,
    rotatedAt: data.rotatedAt ?? null,
    expiresAt,
    absoluteExpiresAt,
    // When the session was bound to its device; null: it is bound to none.
    boundAt: deviceOf(session)?.boundAt ?? null,
  }
}

/**
 * @param {unknown} error
 * @returns {Answer | null} null where the client is gone
 */
function answerTo(error) {
  if (error instanceof Aborted) return null
  if (error instanceof HttpError)
    return json({ error: error.code, message: error.message }, error.status, error.headers)
  if (error instanceof SessionError && error.status < 500) {
    const code = error.code.slice('ERR_SESSION_'.length).toLowerCase()
    return json({ error: code, message: error.message }, error.status)
  }
  // The store is well. For one, this session got 32 new IDs in a few minutes: /session/rotate needs no limit of its own.
  if (error instanceof SessionError && error.code === 'ERR_SESSION_CONFLICT')
    return json({ error: 'conflict', message: error.message }, 409)
  if (error instanceof SessionError && error.status === 503)
    return json({ error: 'store_unavailable', message: 'Sessions cannot be reached just now. Try again.' }, 503, {
      'Retry-After': '2',
    })
  console.error(error)
  return json({ error: 'internal_error', message: 'Something went wrong.' }, 500)
}

/**
 * @param {{ sessions: Sessions, users: import('./users.mjs').Users, cookie?: { secure: boolean } }} parts
 * @returns {import('node:http').RequestListener}
 */
export function createApp({ sessions, users, cookie = { secure: true } }) {
  // A browser that can keeps a key in its device, and proves every few minutes that it has it: copied cookies end soon.
  const visits = deviceBound(nodeVisits(sessions, { cookie }))
  const { login, profile, logout, password, listSessions, session, rotate, endSession, endAllSessions, page } =
    endpoints(sessions, users)
  /** @type {[RegExp, Partial<Record<string, (call: Call) => Promise<Answer>>>][]} */
  const routes = [
    [/^\/$/, { GET: page }],
    [/^\/login$/, { POST: login }],
    [/^\/profile$/, { GET: profile }],
    [/^\/logout$/, { POST: logout }],
    [/^\/password$/, { POST: password }],
    [/^\/session$/, { GET: session }],
    [/^\/session\/rotate$/, { POST: rotate }],
    [/^\/sessions$/, { GET: listSessions, DELETE: endAllSessions }],
    [/^\/sessions\/end$/, { POST: endAllSessions }],
    [/^\/sessions\/([^/]+)$/, { DELETE: endSession }],
  ]

  /**
   * @param {import('node:http').IncomingMessage} request
   * @param {import('node:http').ServerResponse} response
   * @returns {Promise<Answer | null>} null where it is answered
   */
  async function handle(request, response) {
    if (await visits.handled(request, response)) return null
    const path = (request.url ?? '/').split('?', 1)[0] ?? '/'
    const method = request.method === 'HEAD' ? 'GET' : (request.method ?? 'GET')
    const file = asset(path)
    if (file) {
      if (method === 'GET') return file
      throw methodNotAllowed(['GET'])
    }
    for (const [pattern, methods] of routes) {
      const match = pattern.exec(path)
      if (!match) continue
      const endpoint = Object.hasOwn(methods, method) ? methods[method] : undefined
      if (!endpoint) throw methodNotAllowed(Object.keys(methods))
      return await endpoint({ request, visit: visits.of(request, response), key: match[1] ?? '' })
    }
    throw new HttpError(404, 'not_found', 'There is nothing here.')
  }

  return async (request, response) => {
    const answer = await handle(request, response).catch(answerTo)
    if (!answer || response.destroyed) return
    try {
      response.writeHead(answer.status, {
        'X-Content-Type-Options': 'nosniff',
        'Content-Length': Buffer.byteLength(answer.body),
        ...answer.headers,
      })
      response.end(answer.body)
    } catch (error) {
      console.error(error)
      response.destroy()
    }
  }
}

/** @param {string[]} methods */
function methodNotAllowed(methods) {
  const allow = methods.flatMap(method => (method === 'GET' ? ['GET', 'HEAD'] : [method])).join(', ')
  return new HttpError(405, 'method_not_allowed', `Use ${allow}.`, { Allow: allow })
}
