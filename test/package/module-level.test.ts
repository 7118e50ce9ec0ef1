import { afterEach, expect, it, vi } from 'vitest'

// What Cloudflare Workers refuse outside a request: timers, random values, I/O.
// https://developers.cloudflare.com/workers/runtime-apis/web-standards/ ("global scope")
const refused: string[] = []
vi.mock('node:crypto', async importOriginal => {
  const crypto = await importOriginal<typeof import('node:crypto')>()
  const watched = Object.entries(crypto).map(([name, value]) => {
    if (!/^(random|getRandom|generate|pseudo|rng|prng)/.test(name) || typeof value !== 'function') return [name, value]
    const watch = (...args: unknown[]) => {
      refused.push(name)
      return (value as (...args: unknown[]) => unknown)(...args)
    }
    return [name, watch]
  })
  return Object.fromEntries(watched)
})
afterEach(() => {
  vi.restoreAllMocks()
})

it('managers, stores and visits can be made at module level, where Workers allow no timer, no random value and no I/O', async () => {
  for (const name of ['setTimeout', 'setInterval', 'setImmediate', 'fetch'] as const) {
    const original = globalThis[name] as (...args: unknown[]) => unknown
    vi.spyOn(globalThis, name).mockImplementation(((...args: unknown[]) => {
      refused.push(name)
      return original(...args)
    }) as never)
  }
  for (const name of ['getRandomValues', 'randomUUID'] as const)
    vi.spyOn(globalThis.crypto, name).mockImplementation(() => refused.push(name) as never)
  vi.spyOn(Math, 'random').mockImplementation(() => refused.push('Math.random') as never)

  const { SessionManager } = await import('coatcheck')
  const { SessionCookie } = await import('coatcheck/custom-server')
  const { fetchVisits } = await import('coatcheck/fetch')
  const { nodeVisits } = await import('coatcheck/node')
  const { MemoryStore } = await import('coatcheck/stores/memory')
  await import('coatcheck/stores/redis')
  await import('coatcheck/stores/postgres')
  await import('coatcheck/stores/mysql')
  await import('coatcheck/stores/sqlite')
  await import('coatcheck/stores/d1')
  const store = new MemoryStore()
  const sessions = new SessionManager({ store, rememberFor: '30d', limit: { max: 3 }, initial: () => ({ n: 0 }) })
  const visits = fetchVisits(sessions, { cookie: { hostPrefix: true } })
  fetchVisits(sessions.namespace('acme'))
  nodeVisits(sessions, { trustedProxies: ['10.0.0.0/8'] })
  new SessionCookie({ name: 'sid' })
  expect(refused).toEqual([])

  // In a request all of it is allowed, and noticed here.
  await visits.of(new Request('https://a.example/', { method: 'POST' })).logIn({ user: { id: 1, name: 'ada' } })
  expect(new Set(refused)).toEqual(new Set(['randomUUID', 'setTimeout', 'Math.random']))
  await sessions.close()
})
