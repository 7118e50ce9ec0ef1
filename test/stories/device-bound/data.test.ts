// The binding in the data of a session: what an application does with its data leaves it alone.
import { SessionManager, type SessionOptions } from 'coatcheck'
import { deviceOf } from 'coatcheck/device-bound'
import { MemoryStore } from 'coatcheck/stores/memory'
import { describe, expect, it } from 'vitest'
import * as zod from 'zod'
import { boundEdge, DeviceClient } from '../../support/device-client.ts'
import { MINUTE, testClock } from '../../support/test-clock.ts'

const ADA = { id: 42n, name: 'ada' }

async function bound(options: Partial<SessionOptions<any, any, any>> = {}) {
  const clock = testClock()
  const sessions = new SessionManager<any, any, any>({ store: new MemoryStore(), now: clock, ...options })
  const browser = new DeviceClient(boundEdge(sessions))
  await browser.logIn(ADA)
  const session = () => sessions.get(browser.jar.get('session_id') as never, { touch: false })
  return { clock, sessions, browser, session }
}

describe('the binding stays', () => {
  it('where an old copy of the data is written back, by a visit or by the manager', async () => {
    const { clock, sessions, browser, session } = await bound()
    const offered = (await session())!
    await browser.register()
    const registered = (await session())!
    clock.advance(5 * MINUTE)
    await browser.refresh()
    for (const old of [offered, registered]) {
      await sessions.update((await session())!, { ...old.data, n: 1 })
      await browser.page(async visit => {
        await visit.update({ ...old.data, m: 1 })
        return new Response()
      })
      expect(await browser.user()).toBe('ada')
      const thief = browser.copy()
      thief.loseValue()
      expect(await thief.user()).toBeNull()
    }
    expect((await session())!.data).toMatchObject({ n: 1, m: 1 })
  })

  it('where a function of a visit empties the data', async () => {
    const { browser, session } = await bound({ initial: () => ({ cart: [] }) })
    await browser.register()
    await browser.page(async visit => {
      await visit.update((data: Record<string, unknown>) => {
        for (const key of Object.keys(data)) delete data[key]
      })
      return new Response()
    })
    expect(deviceOf((await session())!)).not.toBeNull()
  })

  it('where a client sends keys like ours, and the application writes what it was sent', async () => {
    const { browser, session } = await bound()
    await browser.register()
    const before = deviceOf((await session())!)
    const sent = { '~device.999': { offer: 'A'.repeat(16), at: Date.now() }, n: 1 }
    await browser.page(async visit => {
      await visit.update(sent)
      await visit.update((data: object) => {
        Object.assign(data, sent)
      })
      return new Response()
    })
    const after = (await session())!
    expect([deviceOf(after), Object.keys(after.data).sort()]).toEqual([before, ['n', '~device.1']])
    const response = await browser.logIn(ADA, { data: sent })
    expect(response.headers.has('secure-session-registration')).toBe(true)
    expect(Object.keys((await session())!.data).sort()).toEqual(['n', '~device.0'])
  })

  it('where a visit takes it: there is no such key for the application', async () => {
    const { browser, session } = await bound()
    for (const key of ['~device.0', '~device.1']) {
      const before = (await session())!.data
      expect(Object.keys(before)).toEqual([key])
      await browser.page(async visit => {
        expect(await visit.take(key)).toBeUndefined()
        return new Response()
      })
      expect((await session())!.data).toEqual(before)
      if (key === '~device.0') await browser.register()
    }
    expect(await browser.user()).toBe('ada')
  })

  it('where a function of a visit changes whatever it finds in the data: it does not find it', async () => {
    const { browser, session } = await bound({ initial: () => ({ cart: { hats: 1 } }) })
    await browser.register()
    const before = deviceOf((await session())!)
    const found: string[] = []
    await browser.page(async visit => {
      await visit.update((data: Record<string, Record<string, unknown>>) => {
        found.push(...Object.keys(data))
        for (const value of Object.values(data)) for (const key of Object.keys(value)) value[key] = 7
      })
      return new Response()
    })
    const after = (await session())!
    expect([found, deviceOf(after), after.data]).toMatchObject([['cart'], before!, { cart: { hats: 7 } }])
    expect(await browser.user()).toBe('ada')
  })

  it('where a function fails, which writes nothing', async () => {
    const { browser } = await bound()
    await browser.register()
    await browser.page(async visit => {
      const failing = visit.update(() => {
        throw new Error('mine')
      })
      await expect(failing).rejects.toThrow('mine')
      return new Response()
    })
    expect(await browser.user()).toBe('ada')
  })
})

describe('a login begins anew', () => {
  it('with its own first data, and with that of the session before', async () => {
    const { browser, clock, sessions, session } = await bound({ initial: () => ({ cart: [] as number[], n: 0 }) })
    await browser.register()
    await browser.page(async visit => {
      await visit.update({ cart: [1] })
      return new Response()
    })
    const before = (await session())!
    expect(deviceOf(before)).not.toBeNull()
    for (const data of [undefined, { n: 1 }, (old: object) => old, (old: any) => ({ cart: old.cart })]) {
      const response = await browser.logIn(ADA, data === undefined ? {} : { data })
      expect(response.headers.has('secure-session-registration')).toBe(true)
      expect(deviceOf((await session())!)).toBeNull()
      expect((await browser.register()).status).toBe(200)
      expect(deviceOf((await session())!)).not.toBeNull()
    }
    // Without a visit nothing is offered, and what is carried over binds nothing.
    clock.advance(1)
    expect(deviceOf(await sessions.logIn((await session())!, { user: ADA, data: (old: object) => old }))).toBeNull()
  })

  it('refuses what is no data, as without the binding', async () => {
    const { browser } = await bound()
    const wrong = browser.logIn(ADA, { data: 'text' })
    await expect(wrong).rejects.toMatchObject({ code: 'ERR_SESSION_DATA' })
  })
})

describe('a schema', () => {
  it('has to keep keys that it does not name', async () => {
    const loose = zod.looseObject({ n: zod.number().default(0) })
    const { browser, session } = await bound({ schema: loose })
    await browser.register()
    expect(deviceOf((await session())!)).not.toBeNull()
    expect(await browser.user()).toBe('ada')
    await expect(bound({ schema: zod.object({ n: zod.number().default(0) }) })).rejects.toThrow(
      /^deviceBound: the manager's `schema` drops the keys '~device\.…'.*z\.looseObject/,
    )
    await expect(bound({ schema: zod.strictObject({ n: zod.number().default(0) }) })).rejects.toThrow(/~device\.0/)
  })
})
