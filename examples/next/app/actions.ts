'use server'
import { refresh } from 'next/cache'
import { redirect } from 'next/navigation'
import { visits } from '@/lib/sessions'
import { text } from '@/lib/text'
import { users } from '@/lib/users'

export async function logIn(form: FormData) {
  const user = await users.authenticate(text(form.get('username')), text(form.get('password')))
  if (!user) redirect('/?wrong')
  await visits.withVisit(visit =>
    visit.logIn({ user, remember: form.has('remember'), data: before => ({ cart: before.cart, hint: 'Welcome.' }) }),
  )
  redirect('/')
}

export async function logOut() {
  await visits.withVisit(visit => visit.logOut())
  redirect('/')
}

export async function addCoat() {
  await visits.withVisit(visit =>
    visit.update(data => {
      data.cart.coat = (data.cart.coat ?? 0) + 1
    }),
  )
  refresh()
}
