// Which slot a key is in: as the specification of Redis Cluster says, without a server.
import { describe, expect, it } from 'vitest'
import { keysUnder, shardOfKey, shardOfUser, slotOf } from '../../../stores/redis/keys.ts'

describe('the hash slot of a key', () => {
  it('is that of CLUSTER KEYSLOT', () => {
    // The check value of CRC16/XMODEM, and answers of a server.
    expect(slotOf('123456789')).toBe(0x31c3)
    expect([slotOf('foo'), slotOf('bar'), slotOf('')]).toEqual([12182, 5061, 0])
  })
})

describe('the names of keys in Redis', () => {
  it('put all that belongs to a user into one slot, and each thing under a name of its own', () => {
    const keys = keysUnder('app:', shardOfUser)
    const shard = shardOfUser('42')
    expect(shard).toMatch(/^[A-Za-z0-9_-]{3}$/)
    expect([keys.session(`${shard}rest`), keys.index(shard, '42'), keys.minVersion(shard, '42')]).toEqual([
      `app:{${shard}}:rest`,
      `app:{${shard}}:u:42`,
      `app:{${shard}}:v:42`,
    ])
    expect(shardOfKey(`${shard}rest`)).toBe(shard)
    expect(new Set(Array.from({ length: 100 }, (_, user) => shardOfUser(`${user}`))).size).toBeGreaterThan(90)
  })

  it('match a pattern in which the prefix stands for itself', () => {
    expect(keysUnder('', shardOfUser).pattern).toBe(`{???}:${'?'.repeat(43)}`)
    expect(keysUnder('a*b?[c]\\:', shardOfUser).pattern).toBe(`a\\*b\\?\\[c\\]\\\\:{???}:${'?'.repeat(43)}`)
  })
})
