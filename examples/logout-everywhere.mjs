// @ts-check
// A password change ends every other session, and a login that verified the old password gets none, however late it
// finishes. Two things do that: the password version is read together with the hash, and the order of the three steps.
import { randomBytes, scryptSync, timingSafeEqual } from 'node:crypto'
import { SessionManager } from 'coatcheck'
import { nodeVisits } from 'coatcheck/node'
import { MemoryStore } from 'coatcheck/stores/memory'
import { failure, listener, serve, text } from './serve.mjs'

const sessions = new SessionManager({ store: new MemoryStore() })
const visits = nodeVisits(sessions)

// One row of a user table. `passwordVersion` is a column that each change raises.
const salt = randomBytes(16)
/** @param {string} password */
const hash = password => scryptSync(password, salt, 32)
let ada = { id: 42n, name: 'ada', hash: hash('lovelace'), passwordVersion: 1 }

/** @param {string} password */
function verify(password) {
  const row = ada // hash and version of the same moment
  if (!timingSafeEqual(hash(password), row.hash)) throw failure(401, 'The password is wrong.')
  return row
}

serve(
  listener(visits.of, {
    async 'POST /login'(visit, body) {
      await visit.logIn({ user: verify(text(body, 'password')) })
      return 'Logged in.'
    },

    async 'GET /profile'(visit) {
      return (await visit.get())?.user ?? null
    },

    async 'POST /password'(visit, body) {
      await visit.requireUser()
      const newPassword = text(body, 'newPassword')
      const row = verify(text(body, 'oldPassword'))
      // 1. Commit the new hash and version. In SQL: UPDATE … WHERE id = ? AND password_version = ?
      ada = { ...row, hash: hash(newPassword), passwordVersion: row.passwordVersion + 1 }
      // 2. The caller gets a new ID: a copy of the old one is worth nothing.
      const session = await visit.logIn({ user: ada })
      // 3. Everything else of the user ends. If it rejects, say so and let the user repeat it: some sessions may still be live.
      const { passwordVersion } = ada
      const ended = await sessions.invalidateUser(ada.id, { except: session, minPasswordVersion: passwordVersion })
      return { ended }
    },
  }),
)
