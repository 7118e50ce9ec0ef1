// @ts-check
// The provider of the tests, which takes a refresh token once, and what an application asks it by hand.
import { setTimeout as sleep } from 'node:timers/promises'
import { install } from '../../test/support/scripts/install.mjs'
import '../typescript.mjs'

if (!install('test/libraries')) process.exit(1)
const { startOidcProvider } = await import(new URL('../../test/libraries/provider.ts', import.meta.url).href)
export const provider = await startOidcProvider()
// Long enough for 200 requests to find the old token.
provider.at.gate = () => sleep(500)

/** @param {string} token */
export async function refreshed(token) {
  const client = { client_id: 'shop', client_secret: 'secret' }
  const body = new URLSearchParams({ grant_type: 'refresh_token', refresh_token: token, ...client })
  const response = await fetch(provider.url, { method: 'POST', body })
  if (!response.ok) throw new Error('no token')
  const { access_token: access, refresh_token: refresh } = /** @type {any} */ (await response.json())
  return { access, refresh }
}
