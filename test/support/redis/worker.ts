// One process of several that share a Redis; compiled and forked by redis-processes.test.ts, which tells it what to do.
import { type SessionId, SessionManager } from 'coatcheck'
import { RedisStore } from 'coatcheck/stores/redis'
import { Redis } from 'ioredis'
import { createClient } from 'redis'

export type Order =
  | { op: 'get'; secret: string }
  | { op: 'increment'; secret: string; times: number }
  | { op: 'rotate'; secret: string; times: number }
  | { op: 'regenerate'; secret: string; times: number }
  | { op: 'destroy'; secret: string }
  | { op: 'storm'; user: number; version: number; ms: number }

const [url, kind, skew] = process.argv.slice(2) as [string, string, string]
const client = kind === 'ioredis' ? new Redis(url) : createClient({ url })
client.on('error', () => {})
if ('isOpen' in client) await client.connect()
const sessions = new SessionManager({
  store: new RedisStore(client as never),
  initial: () => ({ n: 0 }),
  storeTimeout: '20s',
  now: () => Date.now() + Number(skew),
})
const moment = () => new Promise(resolve => setTimeout(resolve, Math.random() * 4))

const orders: { [O in Order['op']]: (order: Extract<Order, { op: O }>) => Promise<unknown> } = {
  async get({ secret }) {
    const session = await sessions.get(secret as SessionId)
    return session && { n: session.data.n, secret: session.secret, user: String(session.user?.id) }
  },
  async increment({ secret, times }) {
    let done = 0
    for (let i = 0; i < times; i++) {
      const session = await sessions.get(secret as SessionId)
      if (!session) return done
      const updated = await sessions.update(session, draft => {
        draft.n++
      })
      if (updated) done++
    }
    return done
  },
  async rotate({ secret, times }) {
    let last = secret
    for (let i = 0; i < times; i++) {
      await moment()
      last = (await sessions.regenerate(last as SessionId, { grace: '2m' }))?.secret ?? last
    }
    return last
  },
  async regenerate({ secret, times }) {
    const found = await Promise.all(Array.from({ length: times }, () => sessions.regenerate(secret as SessionId)))
    return found.map(session => session?.secret ?? null)
  },
  destroy: ({ secret }) => sessions.destroy(secret as SessionId),
  // Everything that users do, at random; answers all IDs that were ever alive, and those that were logged out.
  async storm({ user, version, ms }) {
    const login = () => sessions.create({ user: { id: user, name: 'ada', passwordVersion: version } })
    const secrets: string[] = []
    const destroyed: string[] = []
    let stale = 0
    // With a version the logout everywhere is to come: on a busy machine it comes late, and has to be met by a login.
    const end = Date.now() + ms
    const person = async () => {
      let mine: Awaited<ReturnType<typeof login>> | null = null
      while (Date.now() < end || (version > 0 && stale === 0 && Date.now() < end + 20_000)) {
        try {
          mine ??= await login()
          secrets.push(mine.secret)
          const what = Math.random()
          if (what < 0.3) await sessions.update(mine, { n: 1 })
          else if (what < 0.5) mine = (await sessions.regenerate(mine)) as typeof mine
          else if (what < 0.6) mine = (await sessions.regenerate(mine, { grace: '1m' })) as typeof mine
          else if (what < 0.7)
            mine = (await Promise.all([sessions.update(mine, { n: 2 }), sessions.regenerate(mine)]))[1] as typeof mine
          else if (what < 0.85) {
            const { secret } = mine
            await Promise.all([sessions.regenerate(secret), sessions.destroy(secret), sessions.update(mine, { n: 3 })])
            destroyed.push(secret)
            mine = null
          } else if (!(await sessions.get(mine.secret))) mine = null
        } catch (error) {
          if ((error as { code?: string }).code !== 'ERR_SESSION_STALE_LOGIN') throw error
          stale++
          mine = null
          await moment()
        }
        if (mine) secrets.push(mine.secret)
      }
    }
    await Promise.all([person(), person(), person()])
    return { secrets: [...new Set(secrets)], destroyed, stale }
  },
}

process.on('message', async ({ id, order }: { id: number; order: Order }) => {
  try {
    process.send!({ id, answer: (await orders[order.op](order as never)) ?? null })
  } catch (error) {
    process.send!({ id, error: String((error as Error).stack) })
  }
})
process.send!({ ready: true })
