import { fail, redirect } from '@sveltejs/kit'
import { text } from '$lib/server/json'
import { users } from '$lib/server/sessions'
import type { Actions, PageServerLoad } from './$types'

export const load: PageServerLoad = async ({ locals: { visit } }) => {
  const session = await visit.get()
  const hint = await visit.take('hint') // shown once
  return { name: session?.user?.name, coats: session?.data.cart.coat ?? 0, hint }
}

export const actions: Actions = {
  async logIn({ request, locals: { visit } }) {
    const form = await request.formData()
    const user = await users.authenticate(text(form.get('username')), text(form.get('password')))
    if (!user) return fail(401, { error: 'Wrong name or password.' })
    await visit.logIn({
      user,
      remember: form.has('remember'),
      data: before => ({ cart: before.cart, hint: 'Welcome.' }),
    })
    redirect(303, '/')
  },
  async logOut({ locals: { visit } }) {
    await visit.logOut()
    redirect(303, '/')
  },
  async addCoat({ locals: { visit } }) {
    await visit.update(data => {
      data.cart.coat = (data.cart.coat ?? 0) + 1
    })
  },
}
