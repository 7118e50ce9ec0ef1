// @ts-check
import { bodyParser } from '@koa/bodyparser'
import Router from '@koa/router'
import { SessionManager, stringify } from 'coatcheck'
import { nodeVisits } from 'coatcheck/node'
import { MemoryStore } from 'coatcheck/stores/memory'
import Koa from 'koa'
import { openUsers } from '../server/users.mjs' // in place of your user table

const users = await openUsers()
const sessions = new SessionManager({
  store: new MemoryStore(),
  rememberFor: '30d',
  initial: () => ({ cart: /** @type {Record<string, number>} */ ({}), hint: '' }),
})
const visits = nodeVisits(sessions)
/** @param {import('koa').Context} ctx */
const visitIn = ctx => visits.of(ctx.req, ctx.res) // those of node:http, not ctx.request
/** @param {{ request: { body?: any } }} ctx */
const bodyOf = ctx => ctx.request.body ?? {}
/** User IDs are bigint, which Koa cannot write. @param {import('koa').Context} ctx @param {unknown} value */
function json(ctx, value) {
  ctx.type = 'json'
  ctx.body = stringify(value)
}

/** @type {(status: number, code: string) => Error} an error that a client may read */
const refuse = (status, code) => Object.assign(new Error(code), { status, code, expose: true })
/** @param {unknown} field what a client sent: a text, and not a long one */
function text(field) {
  if (typeof field !== 'string' || field.length > 200 || field.includes('\0')) throw refuse(400, 'malformed_field')
  return field
}

const app = new Koa()

app.use(async (ctx, next) => {
  try {
    visitIn(ctx).checkOrigin() // what a page of another origin sends gets no further
    await next()
  } catch (caught) {
    // Our errors, `refuse` and ctx.throw have `expose`; others' may name hosts and keys.
    const { expose, status, code, type, message } = /** @type {any} */ (caught)
    const isMeant = typeof expose === 'boolean' && Number.isInteger(status)
    if (expose !== true) console.error(caught) // the details are for the log alone
    ctx.status = isMeant ? status : 500
    ctx.body = { error: (isMeant && (code ?? type ?? (expose && message))) || 'internal_error' }
  }
})
/** @param {any} error */
const onError = error => {
  throw error.expose ? error : refuse(400, 'malformed_body')
}
app.use(bodyParser({ jsonLimit: '16kb', formLimit: '16kb', enableTypes: ['json', 'form'], onError }))

const router = new Router()

router.get('/profile', async ctx => {
  const { user } = await visitIn(ctx).requireUser()
  json(ctx, user)
})

router.get('/cart', async ctx => {
  const session = await visitIn(ctx).get()
  const hint = await visitIn(ctx).take('hint') // shown once
  ctx.body = { cart: session?.data.cart ?? {}, hint: hint ?? '' }
})

router.post('/cart', async ctx => {
  const { article } = bodyOf(ctx)
  if (!['coat', 'hat'].includes(article)) ctx.throw(400, 'unknown_article')
  const session = await visitIn(ctx).update(data => {
    data.cart[article] = (data.cart[article] ?? 0) + 1
  })
  ctx.body = session?.data.cart ?? {}
})

router.post('/login', async ctx => {
  const { username, password, remember } = bodyOf(ctx)
  const user = await users.authenticate(text(username), text(password))
  if (!user) return ctx.throw(401, 'wrong_credentials')
  const session = await visitIn(ctx).logIn({
    user,
    remember: remember === true,
    data: before => ({ cart: before.cart }),
  })
  json(ctx, session.user)
})

router.post('/logout', async ctx => {
  await visitIn(ctx).logOut()
  ctx.body = { message: 'Logged out.' }
})

router.get('/account', async ctx => {
  await visitIn(ctx).requireUser()
  const csrf = await visitIn(ctx).csrfToken()
  ctx.body = `<form method="post"><input type="hidden" name="csrf" value="${csrf}"><button>Save</button></form>`
})

router.post('/account', async ctx => {
  await visitIn(ctx).requireUser({ freshWithin: '15m' })
  await visitIn(ctx).checkCsrf(bodyOf(ctx).csrf)
  await visitIn(ctx).update({ hint: 'Saved.' })
  ctx.status = 303
  ctx.redirect('/cart')
})

app.use(router.routes())
app.listen(process.env.PORT ?? 3000)
