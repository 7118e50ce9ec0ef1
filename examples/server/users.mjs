// @ts-check
// Demo users, kept in this process. A real service has the same fields in its user table.
import { randomBytes, scrypt, timingSafeEqual } from 'node:crypto'

/**
 * A row as it was read: the hash and the password version belong together.
 * @typedef {object} User
 * @property {bigint} id
 * @property {string} name
 * @property {string} hash
 * @property {number} passwordVersion unsigned 32-bit, rises at each password change
 * @property {boolean} endOthers a password change that could not yet end the user's other sessions
 */

/** @typedef {Awaited<ReturnType<typeof openUsers>>} Users */

const DEMO = { ada: 42n, max: 18446744073709551615n }
const DEMO_PASSWORD = 'correct horse battery staple'

/** OWASP Password Storage Cheat Sheet, scrypt: N=2^15, r=8, p=3 (about 32 MiB and a fifth of a second). */
const COST = { N: 2 ** 15, r: 8, p: 3, maxmem: 2 ** 26 }

/**
 * @param {string} password
 * @param {Buffer} salt
 * @param {import('node:crypto').ScryptOptions} cost
 * @returns {Promise<Buffer>}
 */
const derive = (password, salt, cost) =>
  new Promise((resolve, reject) => {
    // NIST SP 800-63B-4, 3.1.1.2: normalised, so that the same password typed on another keyboard is the same bytes.
    scrypt(password.normalize('NFKC'), salt, 32, cost, (error, key) => (error ? reject(error) : resolve(key)))
  })

/** No password has this hash. Verified for unknown names, so that they take as long as a wrong password. */
const UNKNOWN_USER = `${randomBytes(16).toString('base64url')}.${randomBytes(32).toString('base64url')}`

/**
 * The second in which a password was set is a version that rises by itself, also when this process starts anew with
 * the demo password while a database still remembers the version of an earlier change.
 * @param {number} [previous]
 */
const nextVersion = (previous = 0) => Math.max(previous + 1, Math.floor(Date.now() / 1000))

/** The users of the demo: `ada` and `max`. Only a test makes their passwords cheap to try. */
export async function openUsers(cost = COST) {
  /** @param {string} password */
  const hashPassword = async password => {
    const salt = randomBytes(16)
    return `${salt.toString('base64url')}.${(await derive(password, salt, cost)).toString('base64url')}`
  }
  /**
   * @param {string} password
   * @param {string} hash
   */
  const verifyPassword = async (password, hash) => {
    const [salt = '', key = ''] = hash.split('.')
    return timingSafeEqual(await derive(password, Buffer.from(salt, 'base64url'), cost), Buffer.from(key, 'base64url'))
  }

  /** @type {Map<string, Readonly<User>>} */
  const rows = new Map()
  for (const [name, id] of Object.entries(DEMO))
    rows.set(name, {
      id,
      name,
      hash: await hashPassword(DEMO_PASSWORD),
      passwordVersion: nextVersion(),
      endOthers: false,
    })

  /**
   * Writes to the row unless its password was changed since `user` was read.
   * @param {Readonly<User>} user
   * @param {Partial<User>} change
   */
  const write = (user, change) => {
    const row = rows.get(user.name)
    if (row?.passwordVersion !== user.passwordVersion) return null
    const written = { ...row, ...change }
    rows.set(user.name, written)
    return written
  }

  return {
    /**
     * The row that was current before the password was verified, or `null` for a wrong name or password.
     * @param {string} name
     * @param {string} password
     */
    async authenticate(name, password) {
      const user = rows.get(name)
      const matches = await verifyPassword(password, user?.hash ?? UNKNOWN_USER)
      return user && matches ? user : null
    },
    /**
     * Commits a new password; `null` if another change was faster.
     * @param {Readonly<User>} user
     * @param {string} password
     */
    async changePassword(user, password) {
      const hash = await hashPassword(password)
      return write(user, { hash, passwordVersion: nextVersion(user.passwordVersion), endOthers: true })
    },
    /**
     * Notes that every session from before the password change has ended.
     * @param {Readonly<User>} user
     */
    othersEnded(user) {
      write(user, { endOthers: false })
    },
  }
}
