import formbody from '@fastify/formbody'
import Fastify from 'fastify'
import { openUsers } from '../server/users.mjs' // in place of your user table
import { visits } from './sessions.ts'

const users = await openUsers()
const app = Fastify({ bodyLimit: 16_384 })
await app.register(formbody)
await app.register(visits)

/** What a body has to be; anything else is answered with 400. */
const fields = (required: Record<string, object>, more: Record<string, object> = {}) => ({
  schema: {
    body: { type: 'object', required: Object.keys(required), properties: { ...required, ...more } },
  },
})
const text = { type: 'string', maxLength: 200, pattern: '^[^\\0]*$' } as const

app.get('/profile', async ({ visit }) => (await visit.requireUser()).user)

app.get('/cart', async ({ visit }) => {
  const session = await visit.get()
  const hint = await visit.take('hint') // shown once
  return { cart: session?.data.cart ?? {}, hint: hint ?? '' }
})

type Cart = { Body: { article: string } }
app.post<Cart>('/cart', fields({ article: { enum: ['coat', 'hat'] } }), async ({ visit, body }) => {
  const session = await visit.update(data => {
    data.cart[body.article] = (data.cart[body.article] ?? 0) + 1
  })
  return session?.data.cart ?? {}
})

type Login = { Body: { username: string; password: string; remember?: boolean } }
const login = fields({ username: text, password: text }, { remember: { type: 'boolean' } })
app.post<Login>('/login', login, async ({ visit, body }, reply) => {
  const user = await users.authenticate(body.username, body.password)
  if (!user) return reply.code(401).send({ error: 'wrong_credentials' })
  const session = await visit.logIn({
    user,
    remember: body.remember ?? false,
    data: before => ({ cart: before.cart }),
  })
  return session.user
})

app.post('/logout', async ({ visit }) => {
  await visit.logOut()
  return { message: 'Logged out.' }
})

app.get('/account', async ({ visit }, reply) => {
  await visit.requireUser()
  const csrf = await visit.csrfToken()
  reply.type('text/html').serializer(String)
  return `<form method="post"><input type="hidden" name="csrf" value="${csrf}"><button>Save</button></form>`
})

app.post<{ Body: { csrf: string } }>('/account', async ({ visit, body }, reply) => {
  await visit.requireUser({ freshWithin: '15m' })
  await visit.checkCsrf(body?.csrf)
  await visit.update({ hint: 'Saved.' })
  return reply.redirect('/cart', 303)
})

await app.listen({ port: Number(process.env.PORT ?? 3000) })
