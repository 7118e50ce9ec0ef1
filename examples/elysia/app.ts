import { SessionManager, stringify } from 'coatcheck'
import { fetchVisits } from 'coatcheck/fetch'
import { MemoryStore } from 'coatcheck/stores/memory'
import { Elysia } from 'elysia'
import { openUsers } from '../server/users.mjs' // in place of your user table

const users = await openUsers()
const sessions = new SessionManager({
  store: new MemoryStore(),
  rememberFor: '30d',
  initial: () => ({ cart: {} as Record<string, number>, hint: '' }),
})
const visits = fetchVisits(sessions)

/** User IDs are bigint, which Elysia cannot write. */
const json = (value: unknown, status = 200) =>
  new Response(stringify(value), { status, headers: { 'Content-Type': 'application/json' } })
const refuse = (status: number, code: string) => Object.assign(new Error(code), { status, code, expose: true })
/** A field of what a client sent: a text, and not a long one. */
function text(field: unknown): string {
  if (typeof field !== 'string' || field.length > 200 || field.includes('\0')) throw refuse(400, 'malformed_field')
  return field
}
/** The fields of a body; none where it is something else. */
const fields = (body: unknown) => Object(body) as Record<string, unknown>

const app = new Elysia()
  .onRequest(({ request: { headers } }) => {
    if (headers.has('transfer-encoding') || Number(headers.get('content-length')) > 16_384)
      throw refuse(413, 'body_too_large')
  })
  .onError(({ error, code: kind }) => {
    if (kind === 'PARSE') return json({ error: 'malformed_body' }, 400)
    if (kind === 'NOT_FOUND') return json({ error: 'not_found' }, 404)
    // Our errors have `expose`; others' may name hosts and keys.
    const { expose, status = 500, code } = error as Partial<ReturnType<typeof refuse>>
    if (expose !== true) console.error(error) // the details are for the log alone
    return expose === undefined ? json({ error: 'internal_error' }, 500) : json({ error: code }, status)
  })
  // The visit that goes around this request, below.
  .derive(({ request }) => ({ visit: visits.of(request) }))
  .get('/profile', async ({ visit }) => json((await visit.requireUser()).user))
  .get('/cart', async ({ visit }) => {
    const session = await visit.get()
    const hint = await visit.take('hint') // shown once
    return json({ cart: session?.data.cart ?? {}, hint: hint ?? '' })
  })
  .post('/cart', async ({ visit, body }) => {
    const { article } = fields(body)
    if (article !== 'coat' && article !== 'hat') throw refuse(400, 'unknown_article')
    const session = await visit.update(data => {
      data.cart[article] = (data.cart[article] ?? 0) + 1
    })
    return json(session?.data.cart ?? {})
  })
  .post('/login', async ({ visit, body }) => {
    const { username, password, remember } = fields(body)
    const user = await users.authenticate(text(username), text(password))
    if (!user) throw refuse(401, 'wrong_credentials')
    const session = await visit.logIn({
      user,
      remember: remember === true,
      data: before => ({ cart: before.cart }),
    })
    return json(session.user)
  })
  .post('/logout', async ({ visit }) => {
    await visit.logOut()
    return json('Logged out.')
  })
  .get('/account', async ({ visit }) => {
    await visit.requireUser()
    const form = `<form method="post"><input type="hidden" name="csrf" value="${await visit.csrfToken()}"></form>`
    return new Response(form, { headers: { 'Content-Type': 'text/html' } })
  })
  .post('/account', async ({ visit, body }) => {
    await visit.requireUser({ freshWithin: '15m' })
    await visit.checkCsrf(fields(body).csrf)
    await visit.update({ hint: 'Saved.' })
    return new Response(null, { status: 303, headers: { Location: '/cart' } })
  })

export default {
  port: Number(process.env.PORT ?? 3000),
  fetch: (request: Request) => visits.handle(request, () => app.handle(request)),
}
