import { createFileRoute, redirect } from '@tanstack/react-router'
import { createServerFn } from '@tanstack/react-start'
import { text } from '../body.server'
import { users } from '../sessions.server'

const home = createServerFn().handler(async ({ context: { visit } }) => {
  const session = await visit.get()
  const hint = await visit.take('hint') // shown once
  return { name: session?.user?.name, coats: session?.data.cart.coat ?? 0, hint }
})

const form = createServerFn({ method: 'POST' }).validator((form: FormData) => form)

const addCoat = form.handler(async ({ context: { visit } }) => {
  await visit.update(({ cart }) => {
    cart.coat = (cart.coat ?? 0) + 1
  })
  throw redirect({ to: '/', statusCode: 303 })
})

const logIn = form.handler(async ({ data, context: { visit } }) => {
  const user = await users.authenticate(text(data.get('username')), text(data.get('password')))
  if (!user) throw redirect({ to: '/', search: { wrong: true }, statusCode: 303 })
  const remember = data.has('remember')
  await visit.logIn({ user, remember, data: before => ({ cart: before.cart, hint: 'Welcome.' }) })
  throw redirect({ to: '/', statusCode: 303 })
})

const logOut = form.handler(async ({ context: { visit } }) => {
  await visit.logOut()
  throw redirect({ to: '/', statusCode: 303 })
})

export const Route = createFileRoute('/')({
  validateSearch: ({ wrong }): { wrong?: boolean } => (wrong ? { wrong: true } : {}),
  loader: () => home(),
  component() {
    const { name, coats, hint } = Route.useLoaderData()
    const { wrong } = Route.useSearch()
    return (
      <main>
        <p>{wrong ? 'Wrong name or password.' : hint}</p>
        <p>Coats: {coats}</p>
        <form method="post" action={addCoat.url}>
          <button type="submit">Add a coat</button>
        </form>
        {name ? (
          <form method="post" action={logOut.url}>
            <p>Logged in: {name}</p>
            <button type="submit">Log out</button>
          </form>
        ) : (
          <form method="post" action={logIn.url}>
            <input name="username" autoComplete="username" required />
            <input name="password" type="password" autoComplete="current-password" required />
            <input name="remember" type="checkbox" aria-label="Remember me" />
            <button type="submit">Log in</button>
          </form>
        )}
      </main>
    )
  },
})
