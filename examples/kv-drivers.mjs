// @ts-check
// Drivers for examples/kv-store.mjs. Copy the one that you need.
/** @import { Driver, Item } from './kv-store.mjs' */
import { randomUUID } from 'node:crypto'
import { SWEEP_MARGIN } from 'coatcheck/custom-store'

/**
 * A driver for entries of any size: the text of a long one is in pieces, which never change and expire after it.
 * @param {Driver} driver @param {number} max bytes of an entry in a commit, which may have 100. A piece has a commit of its
 *   own, and up to eight times as many.
 * @returns {Driver}
 */
export function inPieces(driver, max) {
  const piece = new RegExp(`.{1,${2 * max}}`, 'gsu')
  return {
    ...driver,
    async get(keys) {
      const found = await driver.get(keys)
      return Promise.all(
        found.map(async each => {
          if (!each.text?.startsWith('[')) return each
          const [id, count] = JSON.parse(each.text)
          const pieces = await driver.get(Array.from({ length: count }, (_, at) => `p/${id}/${at}`))
          return { ...each, text: pieces.map(({ text }) => text).join('') }
        }),
      )
    },
    async commit(items) {
      const short = items.map(async item => {
        if (!item.text || Buffer.byteLength(item.text) <= max) return item
        const id = randomUUID()
        const until = (item.until ?? 0) + SWEEP_MARGIN
        const pieces = (item.text.match(piece) ?? []).map((text, at) => ({ key: `p/${id}/${at}`, text, until }))
        await Promise.all(pieces.map(each => driver.commit([each])))
        return { ...item, text: JSON.stringify([id, pieces.length]) }
      })
      return driver.commit(await Promise.all(short))
    },
  }
}

/** For tests, and as the example of a driver: it expires nothing. @returns {Driver} */
export function memoryDriver() {
  /** @type {Map<string, { text: string, version: string }>} */
  const entries = new Map()
  let commits = 0
  return {
    checks: 50,
    get: async keys => keys.map(key => entries.get(key) ?? { text: null, version: null }),
    async commit(items) {
      const isAs = (/** @type {Item} */ { key, version }) =>
        version === undefined || version === (entries.get(key)?.version ?? null)
      if (!items.every(isAs)) return false
      commits += 1
      for (const { key, text } of items)
        if (text === null) entries.delete(key)
        else if (text !== undefined) entries.set(key, { text, version: `${commits}` })
      return true
    },
  }
}

/** @template T @param {T[]} all @param {number} size */
const chunks = (all, size) =>
  Array.from({ length: Math.ceil(all.length / size) }, (_, at) => all.slice(at * size, (at + 1) * size))

/** @param {any} kv of `Deno.openKv()`, or of `openKv()` of the package `@deno/kv` @returns {Driver} */
export const denoDriver = kv =>
  // Deno KV takes 64 KiB in an entry, 800 KiB in a commit.
  inPieces(
    {
      checks: 10,
      async get(keys) {
        const found = await Promise.all(chunks(keys, 10).map(ten => kv.getMany(ten.map(key => [key]))))
        return found.flat().map(({ value, versionstamp }) => ({
          text: value === null ? null : Buffer.from(value).toString(),
          version: versionstamp,
        }))
      },
      async commit(items) {
        const commit = kv.atomic()
        for (const { key, version, text, until = 0 } of items) {
          if (version !== undefined) commit.check({ key: [key], versionstamp: version })
          if (text === null) commit.delete([key])
          else if (text !== undefined) {
            const expireIn = Math.min(Math.max(1, until - Date.now()), 1e12)
            commit.set([key], new TextEncoder().encode(text), { expireIn })
          }
        }
        try {
          return (await commit.commit()).ok
        } catch (error) {
          // Another process writes to the file. Nothing was written.
          if (/database is locked/.test(String(error))) return false
          throw error
        }
      },
    },
    7000,
  )

/** Why DynamoDB refuses a commit that others were faster than, or are in the way of: of one entry, and of each of several. */
const CONFLICT = /^(None|(ConditionalCheckFailed|TransactionConflict)(Exception)?)$/

/**
 * @param {any} client `new DynamoDB({ … })` of `@aws-sdk/client-dynamodb`
 * @param {string} TableName with the key `id`, a string, and `ttl` as its attribute for TTL
 * @returns {Driver}
 */
export const dynamoDriver = (client, TableName) =>
  // DynamoDB takes 400 KB in an entry, 4 MB in a commit.
  inPieces(
    {
      checks: 50,
      async get(keys) {
        const found = new Map()
        for (let rest = keys.map(key => ({ id: { S: key } })); rest.length > 0; ) {
          const RequestItems = { [TableName]: { Keys: rest.slice(0, 100), ConsistentRead: true } }
          const { Responses, UnprocessedKeys } = await client.batchGetItem({ RequestItems })
          for (const { id, data, v } of Responses[TableName]) found.set(id.S, { text: data.S, version: v.S })
          // What is too much for one answer: at least one of them is in it, else it was an error.
          rest = [...(UnprocessedKeys?.[TableName]?.Keys ?? []), ...rest.slice(100)]
        }
        return keys.map(key => found.get(key) ?? { text: null, version: null })
      },
      async commit(items) {
        const TransactItems = items.map(({ key, version, text, until = 0 }) => {
          const Key = { id: { S: key } }
          const isSame = version && {
            ConditionExpression: 'v = :v',
            ExpressionAttributeValues: { ':v': { S: version } },
          }
          const isAbsent = version === null && { ConditionExpression: 'attribute_not_exists(id)' }
          const of = { TableName, ...isSame, ...isAbsent }
          if (text === undefined) return { ConditionCheck: { ...of, Key } }
          if (text === null) return { Delete: { ...of, Key } }
          const ttl = { N: `${Math.ceil(until / 1000)}` }
          return { Put: { ...of, Item: { ...Key, data: { S: text }, v: { S: randomUUID() }, ttl } } }
        })
        try {
          const [{ Put, Delete } = {}] = TransactItems
          // A transaction of one costs twice as much.
          if (items.length > 1) await client.transactWriteItems({ TransactItems })
          else await (Put ? client.putItem(Put) : client.deleteItem(Delete))
          return true
        } catch (error) {
          const { name, CancellationReasons = [{ Code: name }] } = /** @type {any} */ (error)
          if (CancellationReasons.every((/** @type {{ Code: string }} */ { Code }) => CONFLICT.test(Code))) return false
          throw error
        }
      },
    },
    40_000,
  )
