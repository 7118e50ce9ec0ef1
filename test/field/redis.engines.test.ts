import { SessionManager } from 'coatcheck'
import { RedisStore } from 'coatcheck/stores/redis'
import { expect, it } from 'vitest'
import { STANDALONE } from '../support/redis/clients.ts'
import { describeEngine } from '../support/services/engines.ts'
import { startRedis } from '../support/services/redis.ts'

describeEngine('redis', 'regressions of the field, in a Redis that the application shares', () => {
  // Django: session IDs were keys beside the application's own in one cache.
  it('CVE-2011-4136: what an application stores under names that its users choose is never read as a session', async () => {
    const server = await startRedis()
    const { client, close } = await STANDALONE['node-redis 6']!(server.url)
    const sessions = new SessionManager({ store: new RedisStore(client), sweepInterval: false, storeTimeout: '30s' })
    const session = await sessions.create({ user: { id: 42, name: 'ada' } })
    const [stored] = (await server.cli('KEYS', `*${session.key.slice(3)}`)).split('\n')
    const value = await server.cli('GET', stored!)
    expect(value).toMatch(/^s 1 /)
    const other = await sessions.create()
    await sessions.destroy(other)
    // A name that a user chose is an ID, or a key, or any text: with the value of a session under it, it is none.
    for (const name of [
      other.secret,
      other.key,
      `session:${other.key}`,
      `sess:${other.secret}`,
      `${other.key.slice(0, 3)}:${other.key}`,
    ])
      await server.cli('SET', name, value)
    expect(await sessions.get(other.secret)).toBe(null)
    // One tenant's session is none of another's, under the same ID too.
    expect(await sessions.namespace('b').get(session.secret as never)).toBe(null)
    expect((await sessions.get(session.secret))?.user?.name).toBe('ada')
    await sessions.close()
    await close()
    await server.stop()
  })
})
