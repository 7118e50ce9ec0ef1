// What test/connect asks of Express, of the other libraries that take our store.
import { SessionManager } from 'coatcheck'
import { connectStore } from 'coatcheck/connect'
import { MemoryStore } from 'coatcheck/stores/memory'
import { RedisStore } from 'connect-redis'
import { describe, expect, it } from 'vitest'
import { EXPRESS, startApp } from '../support/connect/apps.ts'
import { inFramework } from '../support/connect/frameworks.ts'
import { OTHER_APPS } from './connect-apps.ts'

describe.each(Object.entries(OTHER_APPS))('%s', inFramework)

it('one store serves two kinds of middleware, whichever comes first', async () => {
  const apps = Object.entries({ ...OTHER_APPS, [EXPRESS.name]: EXPRESS.start })
  for (const [first, one] of apps)
    for (const [second, other] of apps.filter(([name]) => name !== first)) {
      const sessions = new SessionManager({ store: new MemoryStore(), userIds: 'string', sweepInterval: false })
      const store = connectStore(sessions, { userOf: ({ user }) => user && { id: user } })
      for (const [index, start] of [one, other].entries()) {
        const { browser, close } = await startApp(start, store)
        const [client, user] = [browser(), `user-${index}`]
        await client.go(`/login?user=${user}`)
        for (const key of ['a', 'b']) await client.go(`/write?key=${key}`)
        expect((await client.go('/read')).body, `${first}, ${second}`).toMatchObject({
          user,
          a: 'written',
          b: 'written',
        })
        await client.go('/logout')
        expect(await sessions.list(user)).toEqual([])
        await close()
      }
    }
})

it('our store has the methods of connect-redis, but for the IDs, which are not stored', () => {
  const store = connectStore(new SessionManager({ store: new MemoryStore() }))
  const methods = Object.getOwnPropertyNames(RedisStore.prototype).filter(
    name => typeof (store as any)[name] !== 'function',
  )
  expect(methods.sort()).toEqual(['getAllKeys', 'getTTL', 'ids', 'scanIterator'])
})
