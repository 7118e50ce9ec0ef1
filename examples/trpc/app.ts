import { initTRPC, TRPCError } from '@trpc/server'
import { createHTTPServer } from '@trpc/server/adapters/standalone'
import { SessionError, SessionManager, type VisitOf } from 'coatcheck'
import { nodeVisits } from 'coatcheck/node'
import { MemoryStore } from 'coatcheck/stores/memory'
import { z } from 'zod'
import { openUsers } from '../server/users.mjs' // in place of your user table

const users = await openUsers()
const sessions = new SessionManager({
  store: new MemoryStore(),
  rememberFor: '30d',
  initial: () => ({ cart: {} as Record<string, number>, hint: '' }),
})
const visits = nodeVisits(sessions)
/** The visits that tried a password. A limit on requests would not hold if one batch could try hundreds. */
const tried = new WeakSet<object>()

// Without `isDev: false` the stack goes to the browser unless NODE_ENV is production.
const t = initTRPC.context<{ visit: VisitOf<typeof sessions> }>().create({
  isDev: false,
  // Of what is no TRPCError and not ours the message is for the log alone: it may name hosts and keys.
  errorFormatter: ({ shape, error: { code, cause } }) =>
    code === 'INTERNAL_SERVER_ERROR' && !(cause instanceof SessionError)
      ? { ...shape, message: 'internal_error' }
      : shape,
})
const CODES = { 401: 'UNAUTHORIZED', 403: 'FORBIDDEN', 409: 'CONFLICT', 503: 'SERVICE_UNAVAILABLE' } as const

/** Our errors with their status; their code is the message. What a page of another origin sends gets no further. */
const open = t.procedure
  .use(async ({ next }) => {
    const result = await next()
    if (result.ok || !(result.error.cause instanceof SessionError)) return result
    const { cause } = result.error
    const code = CODES[cause.status as keyof typeof CODES] ?? 'INTERNAL_SERVER_ERROR'
    throw new TRPCError({ code, message: cause.code, cause })
  })
  .use(({ ctx, next }) => {
    ctx.visit.checkOrigin()
    return next()
  })
/** For users who are logged in; `ctx.session` is theirs. */
const closed = open.use(async ({ ctx, next }) => next({ ctx: { session: await ctx.visit.requireUser() } }))

/** User IDs are bigint, and JSON has none: a text, or a transformer such as superjson. */
const shown = ({ id, name }: { id: bigint; name?: string }) => ({ id: `${id}`, name })

/** A field of what a client sent: a text, and not a long one. */
const text = z
  .string()
  .max(200)
  .regex(/^[^\0]*$/)

const router = t.router({
  profile: closed.query(({ ctx }) => shown(ctx.session.user)),

  cart: open.query(async ({ ctx }) => {
    const session = await ctx.visit.get()
    const hint = await ctx.visit.take('hint') // shown once
    return { cart: session?.data.cart ?? {}, hint: hint ?? '' }
  }),

  add: open.input(z.object({ article: z.enum(['coat', 'hat']) })).mutation(async ({ ctx, input }) => {
    const session = await ctx.visit.update(data => {
      data.cart[input.article] = (data.cart[input.article] ?? 0) + 1
    })
    return session?.data.cart ?? {}
  }),

  login: open
    .input(z.object({ username: text, password: text, remember: z.boolean().default(false) }))
    .mutation(async ({ ctx, input }) => {
      if (tried.has(ctx.visit)) throw new TRPCError({ code: 'BAD_REQUEST', message: 'one_login_per_request' })
      tried.add(ctx.visit)
      const user = await users.authenticate(input.username, input.password)
      if (!user) throw new TRPCError({ code: 'UNAUTHORIZED', message: 'wrong_credentials' })
      const { remember } = input
      const session = await ctx.visit.logIn({ user, remember, data: before => ({ cart: before.cart }) })
      return shown(session.user)
    }),

  logout: open.mutation(({ ctx }) => ctx.visit.logOut()),

  save: open.mutation(async ({ ctx }) => {
    await ctx.visit.requireUser({ freshWithin: '15m' })
    await ctx.visit.update({ hint: 'Saved.' })
  }),
})
export type AppRouter = typeof router

createHTTPServer({
  router,
  createContext: ({ req, res }) => ({ visit: visits.of(req, res) }),
  maxBodySize: 16_384,
  onError: ({ error }) => {
    if (/^(?:INTERNAL|SERVICE)/.test(error.code)) console.error(error) // the details are for the log alone
  },
}).listen(Number(process.env.PORT ?? 3000))
