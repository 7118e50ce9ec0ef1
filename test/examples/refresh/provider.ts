// A provider as RFC 9700 wants it: a refresh token is good once, and one that comes again ends the grant.
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'

export async function startProvider() {
  const grants = new Map<string, { grant: string; isSpent: boolean }>()
  const ended = new Set<string>()
  const count = { refreshed: 0, reused: 0 }
  /** What a request for a token waits for. */
  const at = { gate: async (): Promise<void> => {}, failures: 0 }
  const issue = (grant: string) => {
    const token = randomUUID()
    grants.set(token, { grant, isSpent: false })
    return token
  }
  const server = createServer(async (request, response) => {
    const refresh = new URLSearchParams(await text(request)).get('refresh_token') ?? ''
    await at.gate()
    const token = grants.get(refresh)
    const answer = (status: number, body: object) =>
      response.writeHead(status, { 'Content-Type': 'application/json' }).end(JSON.stringify(body))
    if (at.failures-- > 0) return answer(503, {})
    if (token?.isSpent) {
      count.reused++
      ended.add(token.grant)
    }
    if (token === undefined || ended.has(token.grant)) return answer(400, {})
    token.isSpent = true
    count.refreshed++
    const access_token = `of ${token.grant}: ${count.refreshed}`
    return answer(200, { access_token, refresh_token: issue(token.grant), token_type: 'bearer', expires_in: 3600 })
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`,
    count,
    at,
    grant: async (name: string): Promise<string> => issue(name),
    isEnded: async (name: string) => ended.has(name),
    stop: () => new Promise(resolve => server.close(resolve).closeAllConnections()),
  }
}
