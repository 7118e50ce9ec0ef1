import { badRequest } from '@hapi/boom'
import { server as createServer, type Request } from '@hapi/hapi'
import { openUsers } from '../server/users.mjs' // in place of your user table
import { visits } from './sessions.ts'

const users = await openUsers()
const app = createServer({ port: Number(process.env.PORT ?? 3000), routes: { payload: { maxBytes: 16_384 } } })
await app.register(visits)

/** The fields of a body; none where it is something else. */
const fields = ({ payload }: Request) => Object(payload) as Record<string, unknown>
/** A field of what a client sent: a text, and not a long one. */
function text(field: unknown): string {
  if (typeof field !== 'string' || field.length > 200 || field.includes('\0')) throw badRequest('malformed_field')
  return field
}

app.route([
  { method: 'GET', path: '/profile', handler: async ({ visit }) => (await visit.requireUser()).user },
  {
    method: 'GET',
    path: '/cart',
    async handler({ visit }) {
      const session = await visit.get()
      const hint = await visit.take('hint') // shown once
      return { cart: session?.data.cart ?? {}, hint: hint ?? '' }
    },
  },
  {
    method: 'POST',
    path: '/cart',
    async handler(request, h) {
      const { article } = fields(request)
      if (article !== 'coat' && article !== 'hat') return h.response({ error: 'unknown_article' }).code(400)
      const session = await request.visit.update(data => {
        data.cart[article] = (data.cart[article] ?? 0) + 1
      })
      return session?.data.cart ?? {}
    },
  },
  {
    method: 'POST',
    path: '/login',
    async handler(request, h) {
      const { username, password, remember } = fields(request)
      const user = await users.authenticate(text(username), text(password))
      if (!user) return h.response({ error: 'wrong_credentials' }).code(401)
      const session = await request.visit.logIn({
        user,
        remember: remember === true,
        data: before => ({ cart: before.cart }),
      })
      return session.user
    },
  },
  {
    method: 'POST',
    path: '/logout',
    async handler({ visit }) {
      await visit.logOut()
      return { message: 'Logged out.' }
    },
  },
  {
    method: 'GET',
    path: '/account',
    async handler({ visit }, h) {
      await visit.requireUser()
      const csrf = await visit.csrfToken()
      const form = `<form method="post"><input type="hidden" name="csrf" value="${csrf}"><button>Save</button></form>`
      return h.response(form).type('text/html')
    },
  },
  {
    method: 'POST',
    path: '/account',
    async handler(request, h) {
      await request.visit.requireUser({ freshWithin: '15m' })
      await request.visit.checkCsrf(fields(request).csrf)
      await request.visit.update({ hint: 'Saved.' })
      return h.redirect('/cart').code(303)
    },
  },
])

await app.start()
