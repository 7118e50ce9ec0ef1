// Key names: `prefix{shard}:…`. Redis Cluster hashes the shard, so all keys of one user share a slot. A standalone Redis
// gets the same names, so its data can move into a cluster as it is.
import { createHash } from 'node:crypto'

/** Number of hash slots of a Redis Cluster. */
export const SLOTS = 16_384

/** The hash slot of a shard: CRC16 (XMODEM), cluster specification, appendix A. */
export function slotOf(shard: string): number {
  let crc = 0
  for (let i = 0; i < shard.length; i++) {
    crc ^= shard.charCodeAt(i) << 8
    for (let bit = 0; bit < 8; bit++) crc = (crc & 0x8000 ? (crc << 1) ^ 0x1021 : crc << 1) & 0xffff
  }
  return crc % SLOTS
}

/** The shard of a user: 3 characters of a hash of the user ID. These 18 bits spread users over all slots. */
export const shardOfUser = (userId: string) => createHash('sha256').update(userId).digest('base64url').slice(0, 3)
/** Shard of a session key: its first 3 characters. */
export const shardOfKey = (key: string) => key.slice(0, 3)
/** Whether a text begins with a shard. Otherwise (`{}`, empty) Redis may hash more of the name than `slotOf` does. */
export const isKey = (key: string) => /^[\w-]{3}/.test(key)

/** The key names under one prefix, and the shards of users. */
export type Keys = ReturnType<typeof keysUnder>
export const keysUnder = (prefix: string, shardOf: (userId: string) => string) => ({
  shardOf,
  /** The record, or the forward, of a session key. */
  session: (key: string) => `${prefix}{${shardOfKey(key)}}:${key.slice(3)}`,
  /** The user's index: a sorted set of session keys without their shard. It may name sessions that are gone. */
  index: (shard: string, userId: string) => `${prefix}{${shard}}:u:${userId}`,
  /** The user's minimum password version: `<version> <until>`. */
  minVersion: (shard: string, userId: string) => `${prefix}{${shard}}:v:${userId}`,
  /** The glob pattern of all sessions; an index of the same length matches too. */
  pattern: `${prefix.replace(/[\\*?[\]]/g, '\\$&')}{???}:${'?'.repeat(43)}`,
  /** The session key in a name, or `null` for the name of an index. */
  sessionIn: (name: string) => /\{([\w-]{3})\}:([\w-]{43})$/.exec(name)?.slice(1).join('') ?? null,
})
