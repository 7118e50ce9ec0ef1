import { data, Form, redirect } from 'react-router'
import { text } from '../json.server'
import { users, withVisit } from '../sessions.server'
import type { Route } from './+types/home'

export const loader = withVisit(async visit => {
  const session = await visit.get()
  const hint = await visit.take('hint') // shown once
  return { name: session?.user?.name, coats: session?.data.cart.coat ?? 0, hint }
})

export const action = withVisit(async (visit, request) => {
  const form = await request.formData()
  switch (form.get('do')) {
    case 'add': {
      await visit.update(({ cart }) => {
        cart.coat = (cart.coat ?? 0) + 1
      })
      return { error: null }
    }
    case 'log in': {
      const user = await users.authenticate(text(form.get('username')), text(form.get('password')))
      if (!user) return data({ error: 'Wrong name or password.' }, 401)
      const remember = form.has('remember')
      await visit.logIn({ user, remember, data: before => ({ cart: before.cart, hint: 'Welcome.' }) })
      return redirect('/')
    }
    default:
      await visit.logOut()
      return redirect('/')
  }
})

export default function Home({ loaderData: { name, coats, hint }, actionData }: Route.ComponentProps) {
  return (
    <main>
      <p>{actionData?.error ?? hint}</p>
      <p>Coats: {coats}</p>
      <Form method="post">
        <input type="hidden" name="do" value="add" />
        <button type="submit">Add a coat</button>
      </Form>
      {name ? (
        <Form method="post">
          <p>Logged in: {name}</p>
          <input type="hidden" name="do" value="log out" />
          <button type="submit">Log out</button>
        </Form>
      ) : (
        <Form method="post">
          <input type="hidden" name="do" value="log in" />
          <input name="username" autoComplete="username" required />
          <input name="password" type="password" autoComplete="current-password" required />
          <input name="remember" type="checkbox" aria-label="Remember me" />
          <button type="submit">Log in</button>
        </Form>
      )}
    </main>
  )
}
