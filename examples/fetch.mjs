// @ts-check
// For servers that speak Request and Response: Hono, Next route handlers, Remix, Deno, Bun.
//   deno serve --port 3000 examples/fetch.mjs        bun examples/fetch.mjs
// In Hono the same is: app.use(async (c, next) => { …; await next(); c.res = visitOf(c.req.raw).respond(c.res) })
import { createServer } from 'node:http'
import { SessionManager, stringify } from 'coatcheck'
import { fetchEdge } from 'coatcheck/fetch'
import { MemoryStore } from 'coatcheck/stores/memory'

const sessions = new SessionManager({ store: new MemoryStore() })
const visitOf = fetchEdge(sessions)

/** @param {Request} request */
async function answer(request) {
  const visit = visitOf(request) // asked again for the same request, it is the same visit
  switch (`${request.method} ${new URL(request.url).pathname}`) {
    case 'POST /login':
      await visit.regenerate({ user: { id: 42n, name: 'ada' } }) // after the password was verified: see login.mjs
      return Response.json('Logged in.')
    case 'GET /profile':
      return new Response(stringify((await visit.get())?.user ?? null), {
        headers: { 'Content-Type': 'application/json' },
      })
    case 'POST /logout':
      await visit.destroy()
      return Response.json('Logged out.')
    default:
      return Response.json({ error: 'There is nothing here.' }, { status: 404 })
  }
}

const app = {
  /** @param {Request} request */
  async fetch(request) {
    const response = await answer(request).catch(({ status = 500, message }) =>
      Response.json({ error: message }, { status }),
    )
    return visitOf(request).respond(response) // cookies, Vary and Cache-Control go in here
  },
}
export default app

// Deno and Bun serve the default export; node:http needs a few lines, which @hono/node-server has ready.
if (!('Deno' in globalThis || 'Bun' in globalThis)) {
  const server = createServer(async (request, response) => {
    const headers = Object.entries(request.headersDistinct).flatMap(([name, values]) =>
      (values ?? []).map(value => /** @type {[string, string]} */ ([name, value])),
    )
    const { method = 'GET', url } = request
    const answer = await app.fetch(new Request(`http://${request.headers.host}${url}`, { method, headers }))
    response.writeHead(answer.status, [...answer.headers].flat()).end(await answer.text())
  })
  server.listen(Number(process.env.PORT ?? 3000), '127.0.0.1', () => {
    const { port } = /** @type {import('node:net').AddressInfo} */ (server.address())
    console.log(`http://127.0.0.1:${port}`)
  })
}
