import { SessionManager, stringify, type VisitOf } from 'coatcheck'
import { fetchVisits } from 'coatcheck/fetch'
import { MemoryStore } from 'coatcheck/stores/memory'
import { openUsers } from '../server/users.mjs' // in place of your user table

const users = await openUsers()
const sessions = new SessionManager({
  store: new MemoryStore(),
  rememberFor: '30d',
  initial: () => ({ cart: {} as Record<string, number>, hint: '' }),
})
const visits = fetchVisits(sessions)
type Handler = (visit: VisitOf<typeof sessions>, request: Request) => Promise<Response>

/** User IDs are bigint, which `Response.json` cannot write. */
const json = (value: unknown, status = 200) =>
  new Response(stringify(value), { status, headers: { 'Content-Type': 'application/json' } })
const refuse = (status: number, code: string) => Object.assign(new Error(code), { status, code, expose: true })
/** A field of what a client sent: a text, and not a long one. */
function text(field: unknown): string {
  if (typeof field !== 'string' || field.length > 200 || field.includes('\0')) throw refuse(400, 'malformed_field')
  return field
}

async function bodyOf(request: Request) {
  if (!(Number(request.headers.get('content-length') ?? Number.NaN) <= 16_384)) throw refuse(413, 'body_too_large')
  const body = await request.json().catch(() => {
    throw refuse(400, 'malformed_body')
  })
  return (body ?? {}) as Record<string, unknown>
}

const routes: Record<string, Handler> = {
  'GET /profile': async visit => json((await visit.requireUser()).user),

  'GET /cart': async visit => {
    const session = await visit.get()
    const hint = await visit.take('hint') // shown once
    return json({ cart: session?.data.cart ?? {}, hint: hint ?? '' })
  },

  'POST /cart': async (visit, request) => {
    const { article } = await bodyOf(request)
    if (article !== 'coat' && article !== 'hat') throw refuse(400, 'unknown_article')
    const session = await visit.update(data => {
      data.cart[article] = (data.cart[article] ?? 0) + 1
    })
    return json(session?.data.cart ?? {})
  },

  'POST /login': async (visit, request) => {
    const { username, password, remember } = await bodyOf(request)
    const user = await users.authenticate(text(username), text(password))
    if (!user) throw refuse(401, 'wrong_credentials')
    const session = await visit.logIn({
      user,
      remember: remember === true,
      data: before => ({ cart: before.cart }),
    })
    return json(session.user)
  },

  'POST /logout': async visit => visit.logOut().then(() => json('Logged out.')),

  'GET /account': async visit => {
    await visit.requireUser()
    const form = `<form method="post"><input type="hidden" name="csrf" value="${await visit.csrfToken()}"></form>`
    return new Response(form, { headers: { 'Content-Type': 'text/html' } })
  },

  'POST /account': async (visit, request) => {
    await visit.requireUser({ freshWithin: '15m' })
    await visit.checkCsrf((await request.formData()).get('csrf'))
    await visit.update({ hint: 'Saved.' })
    return new Response(null, { status: 303, headers: { Location: '/cart' } })
  },
}

/** Our errors have `expose`; others' may name hosts and keys. */
function answerError(error: { expose?: boolean; status?: number; code?: string }): Response {
  const { expose, status = 500, code } = error
  if (expose !== true) console.error(error) // the details are for the log alone
  return expose === undefined ? json({ error: 'internal_error' }, 500) : json({ error: code }, status)
}

export default {
  port: Number(process.env.PORT ?? 3000), // for Bun; Deno is told on its command line
  fetch(request: Request): Promise<Response> {
    const route = routes[`${request.method} ${new URL(request.url).pathname}`]
    // Errors become answers inside of `handle`, so that their headers are ours as well.
    return visits.handle(request, async visit =>
      route ? route(visit, request).catch(answerError) : json({ error: 'not_found' }, 404),
    )
  },
}
