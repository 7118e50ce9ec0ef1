import { RedisStore } from 'coatcheck/stores/redis'
import { describe, expect, it } from 'vitest'
import { keyIn, soon, T0 } from '../../support/redis/records.ts'

/** What a server says of its memory, and nothing else. */
const telling = (...lines: string[]) => ({
  isOpen: true,
  isReady: true,
  sendCommand: async (command: string[]) =>
    command.join(' ') === 'INFO memory' ? ['# Memory', 'used_memory:1', ...lines, 'x:y', ''].join('\r\n') : null,
})
const refusing = (message: string) => ({
  isOpen: true,
  isReady: true,
  sendCommand: async () => {
    throw new Error(message)
  },
})
type Client = ReturnType<typeof telling>
const read = (client: object) => new RedisStore(client as Client).read(keyIn('abc'), { now: T0, deadline: soon() })
const reasonOf = (client: object) =>
  read(client).then(
    () => null,
    error => error.cause.message as string,
  )

describe('a Redis', () => {
  it.each([
    ['has no limit', ['maxmemory:0', 'maxmemory_policy:allkeys-lru']],
    ['evicts nothing', ['maxmemory:100', 'maxmemory_policy:noeviction']],
    ['has no limit, and tells no policy', ['maxmemory:0']],
    ['evicts nothing, and tells no limit', ['maxmemory_policy:noeviction']],
  ])('that %s is worked on', async (_, lines) => {
    expect(await read(telling(...lines))).toBe(null)
  })

  it.each([
    ['evicts', ['maxmemory:100', 'maxmemory_policy:allkeys-lru'], 'maxmemory 100, maxmemory-policy allkeys-lru'],
    ['tells no policy', ['maxmemory:100'], 'maxmemory 100, maxmemory-policy undefined'],
    ['tells no limit', ['maxmemory_policy:volatile-ttl'], 'maxmemory undefined, maxmemory-policy volatile-ttl'],
    [
      'tells the limit of another first',
      ['my_maxmemory:0', 'my_maxmemory_policy:noeviction', 'maxmemory:7', 'maxmemory_policy:volatile-lru'],
      'maxmemory 7, maxmemory-policy volatile-lru',
    ],
  ])('that %s is refused', async (_, lines, told) => {
    expect(await reasonOf(telling(...lines))).toContain(`(${told})`)
  })

  it('that tells nothing of it is away: a proxy that is starting answers so', async () => {
    expect(await reasonOf(telling())).toBe('INFO memory was not understood')
  })

  it('that does not let itself be asked is refused, and the reason says what to grant', async () => {
    expect(await reasonOf(refusing("NOPERM this user has no permissions to run the 'info' command"))).toMatch(
      /may not ask INFO.*grant \+info, or pass allowEviction: true$/,
    )
  })

  it('that fails is an outage, and no reason to grant anything', async () => {
    expect(await reasonOf(refusing('OOM command not allowed'))).toBe('OOM command not allowed')
    expect(await reasonOf(refusing('read ECONNRESET'))).toBe('read ECONNRESET')
  })

  it('is refused where one of the masters of a cluster evicts', async () => {
    const node = (limit: number, port: number) => ({
      status: 'ready',
      options: { host: 'h', port },
      call: async () => `maxmemory:${limit}\r\nmaxmemory_policy:allkeys-lru\r\n`,
    })
    const cluster = (...limits: number[]) => ({
      status: 'ready',
      isCluster: true,
      slots: Array.from({ length: 16_384 }, (_, slot) => [`h:${slot % limits.length}`]),
      nodes: () => limits.map(node),
      call: async () => null,
    })
    expect(await reasonOf(cluster(0, 0, 5))).toContain('(maxmemory 5, ')
    expect(await reasonOf(cluster(0, 0, 0))).toBe(null)
  })
})
