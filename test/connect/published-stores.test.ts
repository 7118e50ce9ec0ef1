// The questions of published-stores.ts, in memory; engines.test.ts asks them of each database.
import { fromExpressSession } from 'coatcheck/import'
import { MemoryStore } from 'coatcheck/stores/memory'
import { expect, it } from 'vitest'
import { askWhatPublishedStoresAreAsked } from './published-stores.ts'
import { makeStore, sidOf } from './service.ts'

askWhatPublishedStoresAreAsked(() => new MemoryStore())

it('is a store that sessions are imported from, for the step to visits', async () => {
  const { store } = makeStore()
  await store.set(sidOf('old'), { cookie: {}, user: '42' })
  const { data } = (await fromExpressSession({ secret: 's', store }).read(sidOf('old')))!
  expect(Object.entries(data)).toEqual([['user', '42']])
})
