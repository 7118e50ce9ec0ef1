// Where things are kept: `prefix{shard}:…`. The shard is what Redis Cluster hashes, so that all keys of a user share a
// slot; it is written on a standalone Redis too, so that its data can move into a cluster as it is.
import { createHash } from 'node:crypto'
import { type Rule, rule } from '../../src/text/check-options.ts'

// CRC16, XMODEM: redis.io/docs/latest/operate/oss_and_stack/reference/cluster-spec, appendix A.
const CRC16 = Uint16Array.from({ length: 256 }, (_, byte) => {
  let crc = byte << 8
  for (let bit = 0; bit < 8; bit++) crc = crc & 0x8000 ? (crc << 1) ^ 0x1021 : crc << 1
  return crc
})

/** Number of hash slots of a Redis Cluster. */
export const SLOTS = 16_384

/** The hash slot of a shard (ASCII). */
export function slotOf(shard: string): number {
  let crc = 0
  for (let i = 0; i < shard.length; i++) crc = ((crc << 8) & 0xffff) ^ CRC16[(crc >> 8) ^ shard.charCodeAt(i)]!
  return crc % SLOTS
}

/** 3 characters of a hash of the user ID: 18 bits, so that users spread over all 16,384 slots. */
export const shardOf = (userId: string) => createHash('sha256').update(userId).digest('base64url').slice(0, 3)

const SHARD = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'

/** A shard of this hash slot. */
export function shardIn(slot: number): string {
  for (const a of SHARD) for (const b of SHARD) for (const c of SHARD) if (slotOf(a + b + c) === slot) return a + b + c
  throw new RangeError(`no shard has slot ${slot}`)
}

/** Shard of a session key: its first 3 characters. */
export const shardOfKey = (key: string) => key.slice(0, 3)

/** What the user's index calls a session: its key without the shard, which the index has in its own name. */
export const memberOf = (key: string) => key.slice(3)

export interface Keys {
  /** The record, or the forward, of a session key. */
  session(key: string): string
  /** The user's index: a sorted set of members by absolute expiry, a superset of the living. */
  index(userId: string): string
  /** The user's floor: `<password version> <until>`. */
  floor(userId: string): string
}

/**
 * What every key may begin with. A brace would move the hash tag of Redis Cluster: all keys of all users would be in one
 * slot, or the keys of one user in several.
 */
export const aKeyPrefix: Rule = rule(
  "at most 64 characters without braces, spaces and control characters, such as 'app1:'",
  value => typeof value === 'string' && /^[^{}\s\p{Cc}]{0,64}$/u.test(value),
)

/** The glob pattern of all session keys under this prefix; an index or a floor of the same length is among them. */
export const patternUnder = (prefix: string) => `${prefix.replace(/[\\*?[\]]/g, '\\$&')}{???}:${'?'.repeat(43)}`

/** The key names under one prefix. */
export function keysUnder(prefix: string): Keys {
  return {
    session: key => `${prefix}{${key.slice(0, 3)}}:${key.slice(3)}`,
    index: userId => `${prefix}{${shardOf(userId)}}:u:${userId}`,
    floor: userId => `${prefix}{${shardOf(userId)}}:f:${userId}`,
  }
}
