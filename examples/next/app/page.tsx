import { visits } from '@/lib/sessions'
import { addCoat, logIn, logOut } from './actions'

export default async function Page({ searchParams }: PageProps<'/'>) {
  const visit = await visits.current()
  const session = await visit.get()
  const hint = await visit.take('hint') // shown once
  return (
    <main>
      <p>{'wrong' in (await searchParams) ? 'Wrong name or password.' : hint}</p>
      <p>Coats: {session?.data.cart.coat ?? 0}</p>
      <form action={addCoat}>
        <button type="submit">Add a coat</button>
      </form>
      {session?.user ? (
        <form action={logOut}>
          <p>Logged in: {session.user.name}</p>
          <button type="submit">Log out</button>
        </form>
      ) : (
        <form action={logIn}>
          <input name="username" autoComplete="username" required />
          <input name="password" type="password" autoComplete="current-password" required />
          <input name="remember" type="checkbox" aria-label="Remember me" />
          <button type="submit">Log in</button>
        </form>
      )}
    </main>
  )
}
