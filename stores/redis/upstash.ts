// Redis over HTTP: one POST for each command, as Upstash takes it (https://upstash.com/docs/redis/features/restapi).
import type { NodeRedisClient } from './client.ts'

/** The address of a database's REST API, and the token for it. */
export interface UpstashOptions {
  /** Such as `process.env.UPSTASH_REDIS_REST_URL`. */
  readonly url: string
  /** Such as `process.env.UPSTASH_REDIS_REST_TOKEN`: not the read-only one. */
  readonly token: string
}

/** How long a request may take, in ms. Its caller has given up long before. */
const TIMEOUT = 10_000

/**
 * A client for `RedisStore` that speaks the REST API of Upstash, which Vercel KV has too: for runtimes without TCP. It
 * keeps no connection, and sends each command once.
 *
 * @throws TypeError for a url or a token that cannot be.
 */
export function upstash({ url, token }: UpstashOptions): NodeRedisClient {
  if (!/^https?:\/\//.test(url)) throw new TypeError('upstash: url is not the https:// address of a REST API')
  // The message of a fetch that fails shows the whole address, and no fetch takes one with a user.
  if (/[?@]/.test(url)) throw new TypeError('upstash: url has a user or parameters: pass what is secret as token')
  if (typeof token !== 'string' || token === '') throw new TypeError('upstash: token is missing')
  const headers = { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' }
  const client = {
    // A connection is made for each command.
    isOpen: true,
    isReady: true,
    async sendCommand(args: string[]): Promise<unknown> {
      const signal = AbortSignal.timeout(TIMEOUT)
      const response = await fetch(url, { method: 'POST', headers, body: JSON.stringify(args), signal })
      // A proxy that answers in place of Redis sends no JSON.
      const answer = (await response.json().catch(() => ({}))) as { result?: unknown; error?: unknown }
      if (response.ok && answer.result !== undefined) return answer.result
      throw new Error(`${answer.error ?? `the REST API answered ${response.status}`}`)
    },
  }
  return client
}
