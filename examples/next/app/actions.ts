'use server'
import { refresh } from 'next/cache'
import { redirect } from 'next/navigation'
import { users } from '../lib/users'
import { withVisit } from '../lib/visit'

export async function logIn(form: FormData) {
  const user = await users.authenticate(`${form.get('username')}`, `${form.get('password')}`)
  if (!user) redirect('/?wrong')
  await withVisit(visit =>
    visit.logIn({ user, remember: form.has('remember'), data: before => ({ cart: before.cart, hint: 'Welcome.' }) }),
  )
  redirect('/')
}

export async function logOut() {
  await withVisit(visit => visit.logOut())
  redirect('/')
}

export async function addCoat() {
  await withVisit(visit =>
    visit.update(data => {
      data.cart.coat = (data.cart.coat ?? 0) + 1
    }),
  )
  refresh()
}
