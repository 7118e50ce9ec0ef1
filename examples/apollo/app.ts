import { ApolloServer } from '@apollo/server'
import { expressMiddleware } from '@as-integrations/express5'
import { SessionError, SessionManager, type VisitOf } from 'coatcheck'
import { nodeVisits } from 'coatcheck/node'
import { MemoryStore } from 'coatcheck/stores/memory'
import express, { type ErrorRequestHandler } from 'express'
import { GraphQLError } from 'graphql'
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

type Context = { visit: VisitOf<typeof sessions> }
/** GraphQL says that a field is a text, and not how long; what is too long is the empty one, which is nobody's. */
const text = (field: string) => (field.length <= 200 ? field : '')
type Login = { username: string; password: string; remember: boolean }
const itemsOf = (cart: Readonly<Record<string, number>> = {}) =>
  Object.entries(cart).map(([article, count]) => ({ article, count }))
const refuse = (status: number, code: string): never => {
  throw new GraphQLError(code, { extensions: { code, http: { status } } })
}

const typeDefs = /* GraphQL */ `
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
`
const resolvers = {
  User: { id: ({ id }: { id: bigint }) => `${id}` }, // an ID takes text, and no bigint
  Query: {
    profile: async (_: unknown, __: unknown, { visit }: Context) => (await visit.requireUser()).user,
    cart: async (_: unknown, __: unknown, { visit }: Context) => {
      const session = await visit.get()
      const hint = await visit.take('hint') // shown once
      return { items: itemsOf(session?.data.cart), hint: hint ?? '' }
    },
  },
  Mutation: {
    add: async (_: unknown, { article }: { article: string }, { visit }: Context) => {
      const session = await visit.update(data => {
        data.cart[article] = (data.cart[article] ?? 0) + 1
      })
      return itemsOf(session?.data.cart)
    },
    login: async (_: unknown, { username, password, remember }: Login, { visit }: Context) => {
      if (tried.has(visit)) refuse(400, 'one_login_per_request')
      tried.add(visit)
      const user = (await users.authenticate(text(username), text(password))) ?? refuse(401, 'wrong_credentials')
      const session = await visit.logIn({ user, remember, data: before => ({ cart: before.cart }) })
      return session.user
    },
    logout: async (_: unknown, __: unknown, { visit }: Context) => visit.logOut().then(() => true),
    save: async (_: unknown, __: unknown, { visit }: Context) => {
      await visit.requireUser({ freshWithin: '15m' })
      return (await visit.update({ hint: 'Saved.' })) !== null
    },
  },
}

const apollo = new ApolloServer<Context>({
  typeDefs,
  resolvers,
  includeStacktraceInErrorResponses: false,
  // Our errors with their code; the details of what failed inside are for the log alone.
  formatError(shown, error) {
    const cause = (error as GraphQLError).originalError ?? error
    if (cause instanceof SessionError) return { message: cause.code, extensions: { code: cause.code } }
    // What a resolver meant for the client, or Apollo says of the request. Others' errors may name hosts and keys.
    if (cause instanceof GraphQLError && shown.extensions?.code !== 'INTERNAL_SERVER_ERROR') return shown
    console.error(error)
    return { message: 'internal_error' }
  },
  plugins: [
    {
      // Apollo answers 200 to whatever a resolver throws.
      requestDidStart: async () => ({
        async willSendResponse({ errors, response: { http } }) {
          for (const { originalError: cause } of errors ?? [])
            if (cause instanceof SessionError) {
              if (cause.status >= 500) console.error(cause)
              http.status = cause.status
            }
        },
      }),
    },
  ],
})
await apollo.start()

const app = express()
// What a page of another origin sends is refused before an operation runs.
app.use((req, res, next) => next(visits.of(req, res).checkOrigin()))
app.use('/graphql', express.json({ limit: 16_384 }))
app.use('/graphql', expressMiddleware(apollo, { context: async ({ req, res }) => ({ visit: visits.of(req, res) }) }))
const onError: ErrorRequestHandler = (error, _request, response, _next) => {
  const { expose, status, code = error.type } = error
  const isMeant = typeof expose === 'boolean' && Number.isInteger(status)
  if (expose !== true) console.error(error) // the details are for the log alone
  response.status(isMeant ? status : 500).json({ errors: [{ message: (isMeant && code) || 'internal_error' }] })
}
app.use(onError)
app.listen(process.env.PORT ?? 3000)
