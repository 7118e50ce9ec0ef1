import { refresh } from 'next/cache'
import { redirect } from 'next/navigation'
import { visits } from '@/lib/sessions'

async function order() {
  'use server'
  await visits.withVisit(async visit => {
    const session = await visit.get()
    if (!session?.user) redirect('/login')
    await visit.update(({ cart }) => {
      cart.coat = (cart.coat ?? 0) + 1
    })
  })
  refresh()
}

async function logOut() {
  'use server'
  await visits.withVisit(visit => visit.logOut())
  redirect('/login')
}

export default async function Orders() {
  const session = await (await visits.current()).get()
  if (!session?.user) redirect('/login')
  return (
    <main>
      <p>
        Logged in: {session.user.name}. Coats: {session.data.cart.coat ?? 0}
      </p>
      <form action={order}>
        <button type="submit">Order a coat</button>
      </form>
      <form action={logOut}>
        <button type="submit">Log out</button>
      </form>
    </main>
  )
}
