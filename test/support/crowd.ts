// Many requests at once: all of them have arrived before the first is handled, so that what they ask of the store is
// asked for in one turn of the event loop.
import { Agent } from 'node:http'
import { SessionError, type SessionManager, type Visit } from 'coatcheck'
import { fetchVisits } from 'coatcheck/fetch'
import { nodeVisits } from 'coatcheck/node'
import type { Data } from './guarantee-kit.ts'
import { listening, sender } from './listening.ts'

export interface Reply {
  readonly status: number
  /** The name of the user; `''` where there is none. */
  readonly body: string
  /** The Set-Cookie values. */
  readonly cookies: readonly string[]
}

/** Handles requests with these cookies in one turn. One with the path `/logout` logs out first. */
export type Crowd = (requests: readonly { path?: string; cookie: string }[]) => Promise<Reply[]>

async function answer(visit: Visit<Data, 'bigint', Data>, path: string): Promise<{ status: number; body: string }> {
  try {
    if (path === '/logout') await visit.logOut()
    return { status: 200, body: (await visit.get())?.user?.name ?? '' }
  } catch (error) {
    if (!(error instanceof SessionError)) throw error
    return { status: error.status, body: error.code }
  }
}

async function overHttp(sessions: SessionManager<Data>, work: (crowd: Crowd) => Promise<void>): Promise<void> {
  const visits = nodeVisits(sessions)
  let waiting: (() => void)[] = []
  let expected = 0
  const { port, close } = await listening(async (request, response) => {
    await new Promise<void>(resolve => {
      if (waiting.push(resolve) < expected) return
      const all = waiting
      waiting = []
      for (const go of all) go()
    })
    const { status, body } = await answer(visits.of(request, response), request.url!)
    response.statusCode = status
    response.end(body)
  })
  const agent = new Agent({ keepAlive: true })
  const ask = sender(port, agent)
  try {
    await work(requests => {
      expected = requests.length
      return Promise.all(
        requests.map(async ({ path = '/', cookie: sent }) => {
          const { status, body, cookies } = await ask(path, { headers: { cookie: sent } })
          return { status, body, cookies }
        }),
      )
    })
  } finally {
    agent.destroy()
    await close()
  }
}

async function overFetch(sessions: SessionManager<Data>, work: (crowd: Crowd) => Promise<void>): Promise<void> {
  const visits = fetchVisits(sessions)
  await work(requests =>
    Promise.all(
      requests.map(async ({ path = '/', cookie }) => {
        const request = new Request(`https://shop.example${path}`, { headers: { cookie } })
        const response = await visits.handle(request, async visit => {
          const { status, body } = await answer(visit, path)
          return new Response(body, { status })
        })
        return { status: response.status, body: await response.text(), cookies: response.headers.getSetCookie() }
      }),
    ),
  )
}

/** A crowd for each edge; the server behind it lives as long as `work` runs. */
export const CROWDS = { nodeVisits: overHttp, fetchVisits: overFetch }
