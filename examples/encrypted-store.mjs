// @ts-check
// A store around another one that encrypts the data of sessions: whoever reads or edits the database cannot read it.
// encrypted-store.test.mjs runs the suite of the contract. A store for a new database has the same methods.
import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto'
import { SessionStoreError } from 'coatcheck'

/**
 * @param {import('coatcheck').Store} inner
 * @param {readonly Buffer[]} secrets 32 bytes each, the same on every node, not in the database. The first encrypts, all
 *   decrypt. To change it, give the nodes [old, new], then [new, old], and [new] once absoluteTimeout and rememberFor
 *   have passed since. If `old` was stolen, call `invalidateAll` before you remove it.
 * @returns {import('coatcheck').Store}
 */
export function encryptedStore(inner, secrets) {
  const [first] = secrets
  if (!first || secrets.some(({ length }) => length !== 32)) throw new TypeError('secrets: expected 32 bytes each')

  /** @param {string} key @param {string} text */
  function encrypt(key, text) {
    const iv = randomBytes(12)
    // The session key as additional data: what was cut out of one row does not decrypt in another.
    const cipher = createCipheriv('aes-256-gcm', /** @type {Buffer} */ (first), iv).setAAD(Buffer.from(key))
    const body = Buffer.concat([cipher.update(text, 'utf8'), cipher.final()])
    return Buffer.concat([iv, cipher.getAuthTag(), body]).toString('base64url')
  }

  /**
   * @template {import('coatcheck/custom-store').SessionRecord} R
   * @param {'read' | 'listUser' | 'scan'} operation @param {R} record @returns {R}
   */
  function decrypt(operation, record) {
    const all = Buffer.from(record.data, 'base64url')
    for (const secret of secrets) {
      try {
        const decipher = createDecipheriv('aes-256-gcm', secret, all.subarray(0, 12), { authTagLength: 16 })
        decipher.setAAD(Buffer.from(record.key)).setAuthTag(all.subarray(12, 28))
        const data = Buffer.concat([decipher.update(all.subarray(28)), decipher.final()]).toString('utf8')
        return { ...record, data }
      } catch {
        // Another secret encrypted it, or someone edited it.
      }
    }
    // A failure, and neither absent nor corrupt: one node with a wrong secret must not log anyone out.
    throw new SessionStoreError(operation, 'not-applied', 'none of the secrets decrypts this session')
  }

  const walk = inner.scan?.bind(inner)

  return {
    create: (record, ...rest) => inner.create({ ...record, data: encrypt(record.key, record.data) }, ...rest),

    async read(key, ...rest) {
      const found = await inner.read(key, ...rest)
      return found !== null && 'data' in found ? decrypt('read', found) : found
    },

    update: (key, version, change, ...rest) =>
      inner.update(key, version, { ...change, data: encrypt(key, change.data) }, ...rest),
    touch: (...all) => inner.touch(...all),
    replace: (oldKey, oldVersion, record, ...rest) =>
      inner.replace(oldKey, oldVersion, { ...record, data: encrypt(record.key, record.data) }, ...rest),
    delete: (...all) => inner.delete(...all),
    deleteUser: (...all) => inner.deleteUser(...all),

    listUser: async (...all) => (await inner.listUser(...all)).map(record => decrypt('listUser', record)),

    // Methods that a store need not have: absent here where the inner store has none.
    ...(walk && {
      /** @type {NonNullable<typeof walk>} */
      async scan(...all) {
        const page = await walk(...all)
        return { ...page, records: page.records.map(record => decrypt('scan', record)) }
      },
    }),
    ...(inner.count && { count: inner.count.bind(inner) }),
    ...(inner.sweep && { sweep: inner.sweep.bind(inner) }),
    ...(inner.shard && { shard: inner.shard.bind(inner) }),
    ...(inner.close && { close: inner.close.bind(inner) }),
  }
}
