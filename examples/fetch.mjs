// @ts-check
// For servers that speak Request and Response: Hono, Next route handlers, React Router, Deno, Bun.
//   deno serve --port 3000 examples/fetch.mjs        bun examples/fetch.mjs
// Around Hono: fetch: request => visits.handle(request, visit => app.fetch(request, { visit })), then c.env.visit. Not in a
// middleware: assigning c.res lets the cookies and the Cache-Control that are there already replace ours.
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
        const { status = 500, message } = error
        if (status >= 500) console.error(error) // the details are for the log alone
        return Response.json({ error: status < 500 ? message : 'Something went wrong.' }, { status })
      }),
    ),
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
