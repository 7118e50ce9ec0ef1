// @ts-check
import { SessionManager, stringify } from 'coatcheck'
import { nodeVisits } from 'coatcheck/node'
import { MemoryStore } from 'coatcheck/stores/memory'
import express from 'express'
import { openUsers } from '../server/users.mjs' // in place of your user table

const users = await openUsers()
const sessions = new SessionManager({
  store: new MemoryStore(),
  rememberFor: '30d',
  initial: () => ({ cart: /** @type {Record<string, number>} */ ({}), hint: '' }),
})
const visits = nodeVisits(sessions)

/** @type {(status: number, code: string) => Error} an error that a client may read */
const refuse = (status, code) => Object.assign(new Error(code), { status, code, expose: true })
/** @param {unknown} field what a client sent: a text, and not a long one */
function text(field) {
  if (typeof field !== 'string' || field.length > 200 || field.includes('\0')) throw refuse(400, 'malformed_field')
  return field
}

const app = express()
// What a page of another origin sends is refused before any route does something.
app.use((request, response, next) => next(visits.of(request, response).checkOrigin()))
app.use(express.json({ limit: '16kb' }), express.urlencoded({ limit: '16kb' }))

app.get('/profile', async (request, response) => {
  const { user } = await visits.of(request, response).requireUser()
  response.type('json').send(stringify(user)) // its ID is a bigint
})

app.get('/cart', async (request, response) => {
  const visit = visits.of(request, response)
  const session = await visit.get()
  const hint = await visit.take('hint') // shown once
  response.json({ cart: session?.data.cart ?? {}, hint: hint ?? '' })
})

app.post('/cart', async (request, response) => {
  const { article } = request.body ?? {}
  if (!['coat', 'hat'].includes(article)) return response.status(400).json({ error: 'unknown_article' })
  const session = await visits.of(request, response).update(data => {
    data.cart[article] = (data.cart[article] ?? 0) + 1
  })
  response.json(session?.data.cart ?? {})
})

app.post('/login', async (request, response) => {
  const { username, password, remember } = request.body ?? {}
  const user = await users.authenticate(text(username), text(password))
  if (!user) return response.status(401).json({ error: 'wrong_credentials' })
  const session = await visits.of(request, response).logIn({
    user,
    remember: remember === true,
    data: before => ({ cart: before.cart }),
  })
  response.type('json').send(stringify(session.user))
})

app.post('/logout', async (request, response) => {
  await visits.of(request, response).logOut()
  response.json('Logged out.')
})

app.get('/account', async (request, response) => {
  const visit = visits.of(request, response)
  await visit.requireUser()
  const csrf = await visit.csrfToken()
  response.send(`<form method="post"><input type="hidden" name="csrf" value="${csrf}"><button>Save</button></form>`)
})

app.post('/account', async (request, response) => {
  const visit = visits.of(request, response)
  await visit.requireUser({ freshWithin: '15m' })
  await visit.checkCsrf(request.body?.csrf)
  await visit.update({ hint: 'Saved.' })
  response.redirect(303, '/cart')
})

/** @type {import('express').ErrorRequestHandler} */
const answerErrors = (error, _request, response, next) => {
  if (response.headersSent) return next(error)
  // Our errors and those of the body parsers have `expose`; others' may name hosts and keys.
  const { expose, status, code = error.type } = error
  const isMeant = typeof expose === 'boolean' && Number.isInteger(status)
  if (expose !== true) console.error(error) // the details are for the log alone
  response.status(isMeant ? status : 500).json({ error: (isMeant && code) || 'internal_error' })
}
app.use(answerErrors)

app.listen(process.env.PORT ?? 3000)
