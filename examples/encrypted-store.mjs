// @ts-check
// A store of one's own, here around another one: those who read the database, or edit it, cannot read the data of a session.
// encrypted-store.test.mjs shows that it still keeps the contract. A store for a new database has the same methods.
import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto'

/**
 * @param {import('coatcheck').Store} inner
 * @param {Buffer} secret 32 bytes, the same on every node, not in the database
 * @returns {import('coatcheck').Store}
 */
export function encryptedStore(inner, secret) {
  if (secret.length !== 32) throw new TypeError(`secret: expected 32 bytes, got ${secret.length}`)

  /** @param {string} key @param {string} text */
  function encrypt(key, text) {
    const iv = randomBytes(12)
    // The session key as additional data: what was cut out of one row does not decrypt in another.
    const cipher = createCipheriv('aes-256-gcm', secret, iv).setAAD(Buffer.from(key))
    const body = Buffer.concat([cipher.update(text, 'utf8'), cipher.final()])
    return Buffer.concat([iv, cipher.getAuthTag(), body]).toString('base64url')
  }

  /** @param {string} key @param {string} text @returns {string | null} */
  function decrypt(key, text) {
    const all = Buffer.from(text, 'base64url')
    if (all.length < 28) return null
    const decipher = createDecipheriv('aes-256-gcm', secret, all.subarray(0, 12), { authTagLength: 16 })
    decipher.setAAD(Buffer.from(key)).setAuthTag(all.subarray(12, 28))
    try {
      return Buffer.concat([decipher.update(all.subarray(28)), decipher.final()]).toString('utf8')
    } catch {
      return null
    }
  }

  /** @param {readonly import('coatcheck/custom-store').SessionRecord[]} records @returns {import('coatcheck/custom-store').SessionRecord[]} */
  const decrypted = records =>
    records.flatMap(record => {
      const data = decrypt(record.key, record.data)
      return data === null ? [] : [{ ...record, data }]
    })

  const walk = inner.scan?.bind(inner)

  return {
    create: (record, ...rest) => inner.create({ ...record, data: encrypt(record.key, record.data) }, ...rest),

    async read(key, ...rest) {
      const found = await inner.read(key, ...rest)
      if (found === null || !('data' in found)) return found
      const data = decrypt(key, found.data)
      if (data !== null) return { ...found, data }
      // What is corrupt is removed and reported: to the user it is a session that is not there.
      await inner.delete(key, ...rest)
      return { corrupt: 'the data cannot be decrypted' }
    },

    update: (key, version, change, ...rest) =>
      inner.update(key, version, { ...change, data: encrypt(key, change.data) }, ...rest),
    touch: (...all) => inner.touch(...all),
    replace: (oldKey, oldVersion, record, ...rest) =>
      inner.replace(oldKey, oldVersion, { ...record, data: encrypt(record.key, record.data) }, ...rest),
    delete: (...all) => inner.delete(...all),
    deleteUser: (...all) => inner.deleteUser(...all),

    listUser: async (...all) => decrypted(await inner.listUser(...all)),

    // Methods that a store need not have: absent here where the inner store has none.
    ...(walk && {
      /** @type {NonNullable<typeof walk>} */
      async scan(...all) {
        const page = await walk(...all)
        return { ...page, records: decrypted(page.records) }
      },
    }),
    ...(inner.count && { count: inner.count.bind(inner) }),
    ...(inner.sweep && { sweep: inner.sweep.bind(inner) }),
    ...(inner.shard && { shard: inner.shard.bind(inner) }),
    ...(inner.close && { close: inner.close.bind(inner) }),
  }
}
