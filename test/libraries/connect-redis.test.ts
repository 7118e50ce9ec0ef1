import { SessionManager } from 'coatcheck'
import { connectStore } from 'coatcheck/connect'
import { MemoryStore } from 'coatcheck/stores/memory'
import { RedisStore } from 'connect-redis'
import { expect, it } from 'vitest'

it('our store has the methods of connect-redis, but for the IDs, which are not stored', () => {
  const store = connectStore(new SessionManager({ store: new MemoryStore() }))
  const methods = Object.getOwnPropertyNames(RedisStore.prototype).filter(
    name => typeof (store as any)[name] !== 'function',
  )
  expect(methods.sort()).toEqual(['getAllKeys', 'getTTL', 'ids', 'scanIterator'])
})
