import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { SessionError, SessionManager, type VisitOf } from 'coatcheck'
import { nodeVisits } from 'coatcheck/node'
import { MemoryStore } from 'coatcheck/stores/memory'
import { GraphQLError } from 'graphql'
import { createSchema, createYoga, maskError } from 'graphql-yoga'
import { openUsers } from '../server/users.mjs' // in place of your user table

const users = await openUsers()
const sessions = new SessionManager({
  store: new MemoryStore(),
  rememberFor: '30d',
  initial: () => ({ cart: {} as Record<string, number>, hint: '' }),
})
const visits = nodeVisits(sessions)
/** The visits that tried a password. A limit on requests would not hold if one request could try hundreds, as aliases. */
const tried = new WeakSet<object>()

type Served = { req: IncomingMessage; res: ServerResponse }
type Context = { visit: VisitOf<typeof sessions> }
/** GraphQL says that a field is a text, and not how long; what is too long is the empty one, which is nobody's. */
const text = (field: string) => (field.length <= 200 ? field : '')
type Login = { username: string; password: string; remember: boolean }
const itemsOf = (cart: Readonly<Record<string, number>> = {}) =>
  Object.entries(cart).map(([article, count]) => ({ article, count }))

const schema = createSchema<Served & Context>({
  typeDefs: /* GraphQL */ `
    type User { id: ID!, name: String }
    type Item { article: String!, count: Int! }
    type Cart { items: [Item!]!, hint: String! }
    enum Article { coat, hat }
    type Query { profile: User!, cart: Cart! }
    type Mutation {
      add(article: Article!): [Item!]!
      login(username: String!, password: String!, remember: Boolean! = false): User!
      logout: Boolean!
      save: Boolean!
    }
  `,
  resolvers: {
    User: { id: ({ id }: { id: bigint }) => `${id}` }, // an ID takes text, and no bigint
    Query: {
      profile: async (_, __, { visit }) => (await visit.requireUser()).user,
      cart: async (_, __, { visit }) => {
        const session = await visit.get()
        const hint = await visit.take('hint') // shown once
        return { items: itemsOf(session?.data.cart), hint: hint ?? '' }
      },
    },
    Mutation: {
      add: async (_, { article }: { article: string }, { visit }) => {
        const session = await visit.update(data => {
          data.cart[article] = (data.cart[article] ?? 0) + 1
        })
        return itemsOf(session?.data.cart)
      },
      login: async (_, { username, password, remember }: Login, { visit }) => {
        if (tried.has(visit)) throw new GraphQLError('one_login_per_request', { extensions: { http: { status: 400 } } })
        tried.add(visit)
        const user = await users.authenticate(text(username), text(password))
        if (!user) throw new GraphQLError('wrong_credentials', { extensions: { http: { status: 401 } } })
        const session = await visit.logIn({ user, remember, data: before => ({ cart: before.cart }) })
        return session.user
      },
      logout: async (_, __, { visit }) => visit.logOut().then(() => true),
      save: async (_, __, { visit }) => {
        await visit.requireUser({ freshWithin: '15m' })
        return (await visit.update({ hint: 'Saved.' })) !== null
      },
    },
  },
})

const yoga = createYoga<Served, Context>({
  schema,
  cors: false, // its default lets pages of any origin read the answers, with the cookies of their visitors
  context: ({ req, res }) => {
    const visit = visits.of(req, res)
    visit.checkOrigin() // what a page of another origin sends gets no further
    return { visit }
  },
  maskedErrors: {
    // Our errors with their status and code; Yoga hides the others, and logs them.
    maskError(error, message, isDev) {
      const cause = error instanceof GraphQLError ? error.originalError : error
      if (!(cause instanceof SessionError)) return maskError(error, message, isDev)
      if (cause.status >= 500) console.error(cause)
      return new GraphQLError(cause.code, { extensions: { code: cause.code, http: { status: cause.status } } })
    },
  },
})

createServer((request, response) => {
  // Yoga reads a body of any length: one that is too large, or does not say how large it is, is refused here.
  if (request.method === 'POST' && !(Number(request.headers['content-length']) <= 16_384))
    response.writeHead(413, { 'Content-Type': 'application/json' }).end('{"errors":[{"message":"body_too_large"}]}')
  else yoga(request, response)
}).listen(process.env.PORT ?? 3000)
