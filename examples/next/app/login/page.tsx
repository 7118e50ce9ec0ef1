import { redirect } from 'next/navigation'
import { visits } from '@/lib/sessions'
import { text } from '@/lib/text'
import { users } from '@/lib/users'

async function logIn(form: FormData) {
  'use server'
  const user = await users.authenticate(text(form.get('username')), text(form.get('password')))
  if (!user) redirect('/login?wrong')
  const remember = form.has('remember')
  await visits.withVisit(visit => visit.logIn({ user, remember, data: before => ({ cart: before.cart }) }))
  redirect('/orders')
}

export default async function Login({ searchParams }: PageProps<'/login'>) {
  return (
    <form action={logIn}>
      {'wrong' in (await searchParams) && <p role="alert">Wrong name or password.</p>}
      <input name="username" autoComplete="username" required />
      <input name="password" type="password" autoComplete="current-password" required />
      <input name="remember" type="checkbox" aria-label="Remember me" />
      <button type="submit">Log in</button>
    </form>
  )
}
