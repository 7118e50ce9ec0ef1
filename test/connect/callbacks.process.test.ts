import { describe, expect, it } from 'vitest'
import { called } from '../support/connect/apps.ts'
import { makeStore, sidOf } from './service.ts'

const SID = sidOf('one browser')

describe('callbacks', () => {
  it('may be left out, and what they throw is no rejection', async () => {
    const { store } = makeStore()
    await called(callback => store.set(SID, { cookie: {}, a: 1 }, callback))
    const thrown = new Error('of the application')
    const caught = new Promise(resolve => {
      const before = process.listeners('uncaughtException')
      process.removeAllListeners('uncaughtException')
      process.once('uncaughtException', error => {
        for (const listener of before) process.on('uncaughtException', listener)
        resolve(error)
      })
    })
    store.get(SID, () => {
      throw thrown
    })
    expect(await caught).toBe(thrown)
    expect(store.listenerCount('error')).toBe(0)
  })
})
