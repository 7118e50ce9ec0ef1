// @ts-check
// For servers that speak Request and Response: Hono, Next route handlers, React Router, Deno, Bun.
//   deno serve --port 3000 examples/fetch.mjs        bun examples/fetch.mjs
// Around Hono: fetch: (request, env, context) => visits.handle(request, () => app.fetch(request, env, context)), and in its
// first middleware visits.of(c.req.raw), which is the same visit.
import { createServer } from 'node:http'
import { SessionManager, stringify } from 'coatcheck'
import { fetchVisits } from 'coatcheck/fetch'
import { MemoryStore } from 'coatcheck/stores/memory'

const sessions = new SessionManager({ store: new MemoryStore() })
const visits = fetchVisits(sessions)

/** @param {Request} request @param {ReturnType<typeof visits.of>} visit */
async function answer(request, visit) {
  switch (`${request.method} ${new URL(request.url).pathname}`) {
    case 'POST /login':
      await visit.logIn({ user: { id: 42n, name: 'ada' } }) // after the password was verified: see login.mjs
      return Response.json('Logged in.')
    case 'GET /profile':
      return new Response(stringify((await visit.get())?.user ?? null), {
        headers: { 'Content-Type': 'application/json' },
      })
    case 'POST /logout':
      await visit.logOut()
      return Response.json('Logged out.')
    default:
      return Response.json({ error: 'There is nothing here.' }, { status: 404 })
  }
}

const app = {
  /** @param {Request} request */
  fetch: request =>
    // Cookies, Vary and Cache-Control go into the response, whatever it is.
    visits.handle(request, visit =>
      answer(request, visit).catch(error => {
        const { expose, status, message } = error
        const code = typeof expose === 'boolean' && Number.isInteger(status) ? status : 500
        if (code >= 500) console.error(error) // the details are for the log alone
        return Response.json({ error: expose === true ? message : 'Something went wrong.' }, { status: code })
      }),
    ),
}
export default app

// Deno and Bun serve the default export; node:http needs a few lines, which @hono/node-server has ready.
if (!('Deno' in globalThis || 'Bun' in globalThis)) {
  const server = createServer(async (request, response) => {
    try {
      const headers = Object.entries(request.headersDistinct).flatMap(([name, values]) =>
        (values ?? []).map(value => /** @type {[string, string]} */ ([name, value])),
      )
      const { method = 'GET', url } = request
      // There is no Request for TRACE, nor for a Host that is none.
      const answer = await app.fetch(new Request(`http://${request.headers.host}${url}`, { method, headers }))
      response.writeHead(answer.status, [...answer.headers].flat()).end(await answer.text())
    } catch {
      response.writeHead(400).end()
    }
  })
  server.listen(Number(process.env.PORT ?? 3000), '127.0.0.1', () => {
    const { port } = /** @type {import('node:net').AddressInfo} */ (server.address())
    console.log(`http://127.0.0.1:${port}`)
  })
}
