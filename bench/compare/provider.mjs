// @ts-check
// A provider that takes a refresh token once, and what an application asks it by hand.
import { setTimeout as sleep } from 'node:timers/promises'
import '../typescript.mjs'

const { startProvider } = await import(new URL('../../test/examples/refresh/provider.ts', import.meta.url).href)
export const provider = await startProvider()
// Long enough for 200 requests to find the old token.
provider.at.gate = () => sleep(500)

/** @param {string} token */
export async function refreshed(token) {
  const body = new URLSearchParams({ grant_type: 'refresh_token', refresh_token: token })
  const response = await fetch(provider.url, { method: 'POST', body })
  if (!response.ok) throw new Error('no token')
  const { access_token: access, refresh_token: refresh } = /** @type {any} */ (await response.json())
  return { access, refresh }
}
