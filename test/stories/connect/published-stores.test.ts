// The questions of test/support/published-stores.ts, in memory; test/engines/connect.test.ts asks them of each database.
import { fromExpressSession } from 'coatcheck/import'
import { MemoryStore } from 'coatcheck/stores/memory'
import { RedisStore } from 'connect-redis'
import { expect, it } from 'vitest'
import { askWhatPublishedStoresAreAsked } from '../../support/published-stores.ts'
import { makeStore, sidOf } from './service.ts'

askWhatPublishedStoresAreAsked(() => new MemoryStore())

it('has the methods of connect-redis, but for the IDs, which are not stored', () => {
  const { store } = makeStore()
  const methods = Object.getOwnPropertyNames(RedisStore.prototype).filter(
    name => typeof (store as any)[name] !== 'function',
  )
  expect(methods.sort()).toEqual(['getAllKeys', 'getTTL', 'ids', 'scanIterator'])
})

it('is a store that sessions are imported from, for the step to visits', async () => {
  const { store } = makeStore()
  await store.set(sidOf('old'), { cookie: {}, user: '42' })
  const { data } = (await fromExpressSession({ secret: 's', store }).read(sidOf('old')))!
  expect(Object.entries(data)).toEqual([['user', '42']])
})
