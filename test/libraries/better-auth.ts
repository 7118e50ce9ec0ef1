// An unmodified better-auth over a secondary storage, and the ways in which a write that comes late undoes what a user did.
import type { SecondaryStorage } from 'coatcheck/better-auth'
import { expect } from 'vitest'

// By names that the compiler does not follow: the types of this package bring those of a browser into all files.
const load = (name: string): Promise<any> => import(name)
const { betterAuth } = await load('better-auth')
const { memoryAdapter } = await load('better-auth/adapters/memory')

/** Storage whose calls a test can keep waiting. */
function slow(inner: SecondaryStorage) {
  let gate: { key: RegExp; arrived(): void; open: Promise<void> } | null = null
  const meetings = new Map<string, { waiting: number; met(): void; all: Promise<void> }>()
  return {
    storage: {
      ...inner,
      async set(key: string, value: string, ttl?: number) {
        const found = gate?.key.test(key) ? gate : null
        if (found !== null) gate = null
        found?.arrived()
        await found?.open
        await inner.set(key, value, ttl)
      },
      async get(key: string) {
        const value = await inner.get(key)
        const meeting = meetings.get(key)
        if (meeting !== undefined) {
          meeting.waiting -= 1
          if (meeting.waiting === 0) {
            meetings.delete(key)
            meeting.met()
          }
          await meeting.all
        }
        return value
      },
    } satisfies SecondaryStorage,
    /** The next write of such a key waits for `open`. */
    hold(key: RegExp) {
      let arrived = () => {}
      let open = () => {}
      const isThere = new Promise<void>(resolve => {
        arrived = resolve
      })
      const opened = new Promise<void>(resolve => {
        open = resolve
      })
      gate = { key, arrived, open: opened }
      return { isThere, open: () => open() }
    },
    /** So many reads of this key get what was there before the first of them wrote. */
    meet(key: string, waiting: number) {
      let met = () => {}
      const all = new Promise<void>(resolve => {
        met = resolve
      })
      meetings.set(key, { waiting, met, all })
    },
  }
}

const PASSWORD = 'a long password'

export function betterAuthOver(inner: SecondaryStorage, options: object = {}) {
  const { storage, hold, meet } = slow(inner)
  const database: Record<string, unknown[]> = { user: [], session: [], account: [], verification: [] }
  const auth = betterAuth({
    secret: 'a secret of 32 characters or more, for tests',
    baseURL: 'http://localhost',
    database: memoryAdapter(database),
    secondaryStorage: storage,
    rateLimit: { enabled: false },
    // Every look at a session is a refresh.
    session: { expiresIn: 3600, updateAge: 0 },
    emailAndPassword: {
      enabled: true,
      autoSignIn: false,
      password: {
        hash: async (password: string) => password,
        verify: async ({ hash, password }: Record<string, string>) => hash === password,
      },
    },
    ...options,
  })
  const { api } = auth
  let users = 0
  const cookieIn = (answer: Response) => {
    expect(answer.status).toBe(200)
    return new Headers({
      cookie: answer.headers
        .getSetCookie()
        .map(line => line.split(';')[0])
        .join('; '),
    })
  }
  const signUp = async (): Promise<{ id: string; email: string }> => {
    users += 1
    // What better-auth keeps in memory is copied as a whole at each sign-up, and nothing asks for former users any more.
    for (const table of Object.keys(database)) database[table] = []
    const email = `user-${users}@example.com`
    return (await api.signUpEmail({ body: { email, password: PASSWORD, name: 'ada' } })).user
  }
  const signIn = async ({ email }: { email: string }, password = PASSWORD) =>
    cookieIn(await api.signInEmail({ body: { email, password }, asResponse: true }))
  const nameOf = async (headers: Headers): Promise<string | undefined> => (await api.getSession({ headers }))?.user.name
  const tokenOf = async (headers: Headers): Promise<string> => (await api.getSession({ headers })).session.token

  /** A refresh of a session is written after it was ended; who it is afterwards. */
  async function endMeanwhile(end: (own: Headers, other: Headers, token: string) => unknown) {
    const user = await signUp()
    const [own, other] = [await signIn(user), await signIn(user)]
    const token = await tokenOf(own)
    const late = hold(new RegExp(`^${token}$`))
    const refresh = api.getSession({ headers: own })
    await Promise.race([late.isThere, refresh.then(() => Promise.reject(new Error('no refresh was written')))])
    await end(own, other, token)
    late.open()
    await refresh.catch(() => {})
    // A look that refreshes nothing, as most are.
    return (await api.getSession({ headers: own, query: { disableRefresh: true } }))?.user.name ?? null
  }

  return {
    auth,
    api,
    hold,
    signUp,
    signIn,
    nameOf,
    tokenOf,
    /** By what was done; each answers who the ended session is afterwards, which is `null` if it stays ended. */
    revivals: {
      'sign-out': () => endMeanwhile(own => api.signOut({ headers: own })),
      revoke: () => endMeanwhile((_, other, token) => api.revokeSession({ headers: other, body: { token } })),
      'revoke others': () => endMeanwhile((_, other) => api.revokeOtherSessions({ headers: other })),
      'revoke all': () => endMeanwhile((_, other) => api.revokeSessions({ headers: other })),
      'a new password': () =>
        endMeanwhile((_, other) =>
          api.changePassword({
            headers: other,
            body: { currentPassword: PASSWORD, newPassword: `${PASSWORD}!`, revokeOtherSessions: true },
          }),
        ),
    } as Record<string, () => Promise<string | null>>,
    /** Parallel logins of one user: how many the list lacks, and how many outlive a revocation of all others. */
    async parallelLogins(count: number): Promise<number> {
      const user = await signUp()
      meet(`active-sessions-${user.id}`, count)
      const logins = await Promise.all(Array.from({ length: count }, () => signIn(user)))
      const listed: unknown[] = await api.listSessions({ headers: logins[0]! })
      await api.revokeOtherSessions({ headers: logins[0]! })
      const names = await Promise.all(logins.slice(1).map(nameOf))
      return count - listed.length + names.filter(name => name !== undefined).length
    },
    /** The list of a user's sessions is removed: how many it lacks then, and how many outlive a revocation of all others. */
    async lostList(): Promise<number> {
      const user = await signUp()
      const logins = [await signIn(user), await signIn(user), await signIn(user)]
      const { internalAdapter } = await auth.$context
      await storage.delete(`active-sessions-${user.id}`)
      const listed: unknown[] = await internalAdapter.listSessions(user.id)
      await api.revokeOtherSessions({ headers: logins[0]! })
      const names = await Promise.all(logins.slice(1).map(nameOf))
      return logins.length - listed.length + names.filter(name => name !== undefined).length
    },
    /** All sessions of a user are revoked while a login is written, by a clock that stands: whether it outlives that. */
    async lateLogin(): Promise<boolean> {
      const user = await signUp()
      const other = await signIn(user)
      const late = hold(/^[a-zA-Z0-9]{32}$/)
      const login = signIn(user)
      await late.isThere
      await api.revokeSessions({ headers: other })
      late.open()
      return (await nameOf(await login)) !== undefined
    },
  }
}
