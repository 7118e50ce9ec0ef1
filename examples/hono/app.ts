import { type HttpBindings, serve } from '@hono/node-server'
import { SessionError, SessionManager, stringify, type VisitOf } from 'coatcheck'
import { nodeVisits } from 'coatcheck/node'
import { MemoryStore } from 'coatcheck/stores/memory'
import { Hono } from 'hono'
import { bodyLimit } from 'hono/body-limit'
import { HTTPException } from 'hono/http-exception'
import { openUsers } from '../server/users.mjs' // in place of your user table

const users = await openUsers()
const sessions = new SessionManager({
  store: new MemoryStore(),
  rememberFor: '30d',
  initial: () => ({ cart: {} as Record<string, number>, hint: '' }),
})
const visits = nodeVisits(sessions)

const app = new Hono<{ Bindings: HttpBindings; Variables: { visit: VisitOf<typeof sessions> } }>()

app.use(async (c, next) => {
  c.set('visit', visits.of(c.env.incoming, c.env.outgoing))
  c.var.visit.checkOrigin() // what a page of another origin sends gets no further
  await next()
})
app.use(
  bodyLimit({
    maxSize: 16_384,
    onError: () => {
      throw new HTTPException(413, { message: 'body_too_large' })
    },
  }),
)
app.onError((error, c) => {
  if (error instanceof HTTPException) return c.json({ error: error.message }, error.status)
  // Others' errors may name hosts and keys.
  const { status, code } = error instanceof SessionError ? error : { status: 500, code: 'internal_error' }
  if (status >= 500) console.error(error) // the details are for the log alone
  return c.json({ error: code }, status as 500)
})

/** User IDs are bigint, which `c.json` cannot write. */
const json = (value: unknown) => new Response(stringify(value), { headers: { 'Content-Type': 'application/json' } })
/** A field of what a client sent: a text, and not a long one. */
function text(field: unknown): string {
  if (typeof field !== 'string' || field.length > 200 || field.includes('\0')) {
    throw new HTTPException(400, { message: 'malformed_field' })
  }
  return field
}
/** The fields of a JSON body; none where it is something else. */
const fields = async (request: { json(): Promise<unknown> }) => {
  const body = await request.json().catch(() => {
    throw new HTTPException(400, { message: 'malformed_body' })
  })
  return (body ?? {}) as Record<string, unknown>
}

app.get('/profile', async c => {
  const { user } = await c.var.visit.requireUser()
  return json(user)
})

app.get('/cart', async c => {
  const session = await c.var.visit.get()
  const hint = await c.var.visit.take('hint') // shown once
  return c.json({ cart: session?.data.cart ?? {}, hint: hint ?? '' })
})

app.post('/cart', async c => {
  const { article } = await fields(c.req)
  if (article !== 'coat' && article !== 'hat') throw new HTTPException(400, { message: 'unknown_article' })
  const session = await c.var.visit.update(data => {
    data.cart[article] = (data.cart[article] ?? 0) + 1
  })
  return c.json(session?.data.cart ?? {})
})

app.post('/login', async c => {
  const { username, password, remember } = await fields(c.req)
  const user = await users.authenticate(text(username), text(password))
  if (!user) throw new HTTPException(401, { message: 'wrong_credentials' })
  const session = await c.var.visit.logIn({
    user,
    remember: remember === true,
    data: before => ({ cart: before.cart }),
  })
  return json(session.user)
})

app.post('/logout', async c => {
  await c.var.visit.logOut()
  return c.json('Logged out.')
})

app.get('/account', async c => {
  await c.var.visit.requireUser()
  const csrf = await c.var.visit.csrfToken()
  return c.html(`<form method="post"><input type="hidden" name="csrf" value="${csrf}"><button>Save</button></form>`)
})

app.post('/account', async c => {
  await c.var.visit.requireUser({ freshWithin: '15m' })
  await c.var.visit.checkCsrf((await c.req.parseBody()).csrf)
  await c.var.visit.update({ hint: 'Saved.' })
  return c.redirect('/cart', 303)
})

serve({ fetch: app.fetch, port: Number(process.env.PORT ?? 3000) })
