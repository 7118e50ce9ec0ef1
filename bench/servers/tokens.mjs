// @ts-check
// What people pick instead of a session: a signed token (JWT, HS256) in the cookie. Nothing is stored, so that a logout
// clears the cookie and ends nothing: the token goes on to be good until it expires.
import { SECRET } from './frameworks.mjs'
import { valueIn } from './handlers.mjs'
import { pathOf, send, serve, userOf } from './serve.mjs'

/** @param {import('node:http').IncomingMessage} request */
const tokenOf = request => /(?:^|; )session_id=([\w.-]+)(?:;|$)/.exec(request.headers.cookie ?? '')?.[1]

/**
 * @param {(claims: Record<string, unknown>) => unknown} sign
 * @param {(token: string) => any} verify throws for a token that is not good
 * @returns {import('./serve.mjs').Handler}
 */
const server = (sign, verify) => async (request, response) => {
  const token = tokenOf(request)
  const claims = token === undefined ? null : await verify(token)
  if (request.method === 'GET')
    return send(response, JSON.stringify(claims && { id: Number(claims.sub), name: claims.name }))
  const path = pathOf(request.url)
  if (path === '/logout') response.setHeader('Set-Cookie', 'session_id=; Max-Age=0; HttpOnly')
  else {
    const { id, name } = path === '/login' ? userOf(request.url) : { id: claims.sub, name: claims.name }
    const signed = await sign({ sub: String(id), name, ...(path === '/write' && { value: valueIn(request.url) }) })
    response.setHeader('Set-Cookie', `session_id=${signed}; HttpOnly`)
  }
  send(response, '"ok"')
}

await serve({
  async 'JWT, jose'() {
    const { SignJWT, jwtVerify } = await import('jose')
    // Imported once: jose imports a text or bytes anew at each call.
    const hmac = { name: 'HMAC', hash: 'SHA-256' }
    const key = await crypto.subtle.importKey('raw', Buffer.from(SECRET), hmac, false, ['sign', 'verify'])
    const options = { algorithms: ['HS256'] }
    return server(
      claims =>
        new SignJWT(claims).setProtectedHeader({ alg: 'HS256' }).setIssuedAt().setExpirationTime('30m').sign(key),
      async token => (await jwtVerify(token, key, options)).payload,
    )
  },
})
