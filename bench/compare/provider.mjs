// @ts-check
// A provider whose refresh tokens are good once: one that comes again ends its grant (RFC 9700, 4.14.2).
import { randomUUID } from 'node:crypto'
import { createServer } from 'node:http'
import { text } from 'node:stream/consumers'
import { setTimeout as sleep } from 'node:timers/promises'

/** Long enough for 200 requests to find the old token. */
const ANSWER_MS = 500

/** @typedef {{ token: string, refreshes: number, isEnded: boolean }} Grant `token` is the one that is good */
/** By each of its tokens. @type {Map<string, Grant>} */
const grants = new Map()

/** @param {Grant} grant */
function issue(grant) {
  grant.token = randomUUID()
  grants.set(grant.token, grant)
  return grant
}
export const newGrant = () => issue({ token: '', refreshes: 0, isEnded: false })

const server = createServer(async (request, response) => {
  const token = new URLSearchParams(await text(request)).get('refresh_token') ?? ''
  await sleep(ANSWER_MS)
  const grant = grants.get(token)
  if (grant && grant.token !== token) grant.isEnded = true
  const isGood = grant && !grant.isEnded
  if (isGood) issue(grant).refreshes += 1
  const body = isGood
    ? { access_token: randomUUID(), refresh_token: grant.token, token_type: 'bearer', expires_in: 3600 }
    : { error: 'invalid_grant' }
  response.writeHead(isGood ? 200 : 400, { 'Content-Type': 'application/json' }).end(JSON.stringify(body))
})
await new Promise(resolve => server.listen(0, '127.0.0.1', () => resolve(undefined)))
export const TOKEN_URL = `http://127.0.0.1:${/** @type {any} */ (server.address()).port}/token`

/** What an application does by hand. @param {string} token */
export async function refreshed(token) {
  const body = new URLSearchParams({ grant_type: 'refresh_token', refresh_token: token })
  const response = await fetch(TOKEN_URL, { method: 'POST', body })
  if (!response.ok) throw new Error('no token')
  const { access_token: access, refresh_token: refresh } = /** @type {any} */ (await response.json())
  return { access, refresh }
}
