// @ts-check
// OpenID Connect Back-Channel Logout 1.0: who logs out at the provider is logged out here (docs/guide/back-channel-logout.md).
/** @import { SessionManager as Manager, UserIdInput, UserIds, Visit } from 'coatcheck' */
import { createHash } from 'node:crypto'
import { SessionManager } from 'coatcheck'
import { createRemoteJWKSet, jwtVerify } from 'jose'

const EVENT = 'http://schemas.openid.net/event/backchannel-logout'
const ALGORITHMS = ['RS256', 'PS256', 'ES256', 'EdDSA']
/** Errors of jose that say that the token is wrong; the others say that it could not be checked. */
const WRONG = /^ERR_(JWT|JWS|JOSE_ALG|JOSE_NOT|JWKS_NO|JWKS_MULTIPLE)/

/** @param {number} status @param {string} message @param {unknown} [cause] */
const failure = (status, message, cause) => Object.assign(new Error(message, { cause }), { status, expose: true })

/** @param {string} text */
const sha256 = text => createHash('sha256').update(text).digest('base64url')

/** Spread it into `initial`: the session at the provider. @returns {{ oidc: { issuer: string, sid: string | null } | null }} */
export const oidc = () => ({ oidc: null })

/**
 * @template {ReturnType<typeof oidc>} D @template {UserIds} I
 * @param {Manager<D, I>} sessions
 * @param {object} provider
 * @param {import('coatcheck/custom-store').Store} provider.store that of `sessions`
 * @param {string} provider.issuer @param {string} provider.audience your `client_id`
 * @param {string} provider.jwks URL of its keys
 * @param {(subject: string) => Promise<UserIdInput<I> | null>} provider.userIdOf
 */
export function backChannelLogout(sessions, { store, issuer, audience, jwks, userIdOf }) {
  const keys = createRemoteJWKSet(new URL(jwks))
  const rules = { issuer, audience, algorithms: ALGORITHMS, maxTokenAge: '3m', clockTolerance: '1m' }
  const requiredClaims = ['jti', 'sub', 'events']
  // What has ended, and which tokens were used: for all nodes, and for longer than a token is good or a login takes. Each is a
  // session of no browser, with a name in place of a user.
  const hour = /** @type {const} */ ({ idleTimeout: '1h', absoluteTimeout: '1h', sweepInterval: false })
  const notes = new SessionManager({ store, userIds: 'string', initial: () => ({ iat: 0 }), ...hour }).namespace('oidc')
  /** @param {...unknown} name */
  const idOf = (...name) => sha256(JSON.stringify([issuer, ...name]))
  /** @param {string} id */
  const notesOf = async id => (await notes.list(id)).map(({ data }) => data)
  /** @param {string} id @param {number} iat */
  const note = (id, iat) => notes.create({ user: { id, name: 'note' }, data: { iat } })

  return {
    /**
     * Ends what a logout token names. It rejects with status 400 if that is none, and with another one if the provider
     * should send it again.
     * @param {unknown} logoutToken
     */
    async receive(logoutToken) {
      const { payload } = await jwtVerify(String(logoutToken), keys, { ...rules, requiredClaims }).catch(error => {
        if (WRONG.test(error.code)) throw failure(400, 'this is no logout token', error)
        throw failure(503, 'the keys of the provider are away', error)
      })
      const { sub = '', sid, jti, iat = 0, events, nonce } = /** @type {any} */ (payload)
      // With a nonce it would be an ID token.
      if (typeof (events?.[EVENT] ?? '') !== 'object' || nonce !== undefined)
        throw failure(400, 'this is no logout token')
      const used = idOf('jti', jti)
      if ((await notesOf(used)).length > 0) throw failure(400, 'this logout token was used before')
      // First the note, then the end. A login first begins its session and then looks: one of the two sees the other.
      await note(sid === undefined ? idOf('sub', sub) : idOf('sid', sid), iat)
      const user = await userIdOf(sub)
      if (user !== null && sid === undefined) await sessions.invalidateUser(user)
      else if (user !== null)
        for (const { key, data } of await sessions.list(user))
          if (data.oidc?.issuer === issuer && data.oidc.sid === sid) await sessions.revoke(user, key)
      // At last: what fails may be sent again.
      await note(used, iat)
    },

    /**
     * In place of `visit.logIn`, once the ID token is verified: rejects with status 401 if the provider has ended its session.
     * @param {Visit<D, I>} visit @param {Parameters<Visit<D, I>['logIn']>[0] & { data?: object }} login
     * @param {{ sub: string, sid?: string, iat: number, auth_time?: number }} claims of the ID token
     */
    async logIn(visit, login, { sub, sid, iat, auth_time: verified }) {
      const data = /** @type {any} */ ({ ...login.data, oidc: { issuer, sid: sid ?? null } })
      const session = await visit.logIn({ verifiedAt: verified ? verified * 1000 : null, ...login, data })
      try {
        const ofUser = await notesOf(idOf('sub', sub))
        const ofSession = sid === undefined ? [] : await notesOf(idOf('sid', sid))
        if (ofSession.length === 0 && !ofUser.some(ended => iat <= ended.iat)) return session
        throw failure(401, 'logged out at the provider meanwhile')
      } catch (error) {
        await visit.logOut()
        throw error
      }
    },
  }
}
