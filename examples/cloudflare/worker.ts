import { SessionError, SessionManager, stringify } from 'coatcheck'
import { fetchVisits } from 'coatcheck/fetch'
import { MemoryStore } from 'coatcheck/stores/memory'

const sessions = new SessionManager({
  store: new MemoryStore(), // for a try: each isolate of Cloudflare has its own
  rememberFor: '30d',
  initial: () => ({ cart: {} as Record<string, number>, hint: '' }),
})
// On Cloudflare the URL says how the browser came. `wrangler dev` speaks HTTP, and adds the header of a proxy.
const isSecure = ({ url }: Request) => /^(?:https:|http:\/\/(?:localhost|127\.0\.0\.1)[:/])/.test(url)
const visits = fetchVisits(sessions, { isSecure })
type Visit = ReturnType<typeof visits.of>

// A Worker may not draw random numbers before its first request: the demo users are made then.
const openUsers = async () => (await import('../server/users.mjs')).openUsers() // in place of your user table
let users: ReturnType<typeof openUsers> | undefined

const refusal = (status: number, error: string) => Response.json({ error }, { status })
const json = (value: unknown) => new Response(stringify(value), { headers: { 'Content-Type': 'application/json' } })

/** A field of what a client sent: a text, and not a long one. */
function text(field: unknown): string {
  if (typeof field !== 'string' || field.length > 200 || field.includes('\0')) throw refusal(400, 'malformed_field')
  return field
}

async function readJson(request: Request): Promise<Record<string, unknown>> {
  if (!(Number(request.headers.get('content-length') ?? Number.NaN) <= 16_384)) throw refusal(413, 'body_too_large')
  return Object(
    await request.json().catch(() => {
      throw refusal(400, 'malformed_body')
    }),
  )
}

const routes: Record<string, (visit: Visit, request: Request) => Promise<Response>> = {
  async 'GET /profile'(visit) {
    return json((await visit.requireUser()).user)
  },

  async 'GET /cart'(visit) {
    const session = await visit.get()
    const hint = await visit.take('hint') // shown once
    return json({ cart: session?.data.cart ?? {}, hint: hint ?? '' })
  },

  async 'POST /cart'(visit, request) {
    const { article } = await readJson(request)
    if (article !== 'coat' && article !== 'hat') return refusal(400, 'unknown_article')
    const session = await visit.update(data => {
      data.cart[article] = (data.cart[article] ?? 0) + 1
    })
    return json(session?.data.cart ?? {})
  },

  async 'POST /login'(visit, request) {
    const { username, password, remember } = await readJson(request)
    users ??= openUsers()
    const user = await (await users).authenticate(text(username), text(password))
    if (!user) return refusal(401, 'wrong_credentials')
    const session = await visit.logIn({
      user,
      remember: remember === true,
      data: before => ({ cart: before.cart }),
    })
    return json(session.user)
  },

  async 'POST /logout'(visit) {
    await visit.logOut()
    return json('Logged out.')
  },

  async 'GET /account'(visit) {
    await visit.requireUser()
    const csrf = await visit.csrfToken()
    const form = `<form method="post"><input type="hidden" name="csrf" value="${csrf}"><button>Close</button></form>`
    return new Response(form, { headers: { 'Content-Type': 'text/html' } })
  },

  async 'POST /account'(visit, request) {
    await visit.requireUser({ freshWithin: '15m' })
    await visit.checkCsrf((await request.formData()).get('csrf'))
    await visit.update({ hint: 'Saved.' })
    return new Response(null, { status: 303, headers: { Location: '/cart' } })
  },
}

export default {
  fetch(request: Request) {
    const route = routes[`${request.method} ${new URL(request.url).pathname}`]
    if (!route) return refusal(404, 'not_found')
    return visits.handle(request, visit =>
      route(visit, request).catch(error => {
        if (error instanceof Response) return error
        if (!(error instanceof SessionError && error.expose)) console.error(error) // the details are for the log alone
        return error instanceof SessionError ? error.getResponse() : refusal(500, 'internal_error')
      }),
    )
  },
}
