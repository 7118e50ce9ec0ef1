// Our store fails: that is an error with status 503, and never a new session. frameworks.ts asks it of each framework.
import { MemoryStore } from 'coatcheck/stores/memory'
import { expect, it } from 'vitest'
import { BarrierStore, faults } from '../support/barrier-store.ts'
import { called } from '../support/connect/apps.ts'
import { makeStore, serve, sidOf } from './service.ts'

async function start() {
  const barrier = BarrierStore.over(new MemoryStore())
  const leave = (request: any, response: any) => {
    request.session.destroy()
    response.end('left')
  }
  const made = await serve({ '/leave': leave }, { manager: { store: barrier } })
  const one = made.browser()
  await one.go('/login?user=42')
  return { ...made, barrier, one }
}

it('a save, a logout and a login that failed say so, and can be repeated', async () => {
  const { barrier, one, errors } = await start()
  barrier.every('update', faults.rejects)
  await one.go('/write?key=a&value=1')
  expect(errors).toMatchObject([{ code: 'ERR_SESSION_STORE' }])
  barrier.every('update', null)
  await one.go('/write?key=a&value=1')
  expect(await one.read()).toEqual({ user: '42', a: '1' })
  barrier.every('delete', faults.rejects)
  for (const path of ['/logout', '/login?user=43']) expect((await one.go(path)).status).toBe(503)
  barrier.every('delete', null)
  expect((await one.go('/logout')).status).toBe(200)
})

it('a logout that fails takes no process down if nobody waits for the answer', async () => {
  const { barrier, one, events } = await start()
  barrier.every('delete', faults.rejects)
  // A rejection that nobody handles would fail this run.
  expect((await one.go('/leave')).body).toBe('left')
  expect(events).toContain('store-error')
})

it('a session whose beginning got no answer is asked for again by the next save of the same object', async () => {
  const barrier = BarrierStore.over(new MemoryStore())
  const { store } = makeStore({ store: barrier })
  const session = { cookie: {}, user: '42' }
  barrier.next('create', faults.rejectsAfter)
  await expect(store.set(sidOf('lost'), session)).rejects.toMatchObject({ code: 'ERR_SESSION_STORE' })
  await store.set(sidOf('lost'), session)
  expect(await store.get(sidOf('lost'))).toEqual(session)
})

it('a login whose answer got lost succeeds if the request saves again', async () => {
  const barrier = BarrierStore.over(new MemoryStore())
  const twice = async (request: any, response: any) => {
    await called(callback => request.session.regenerate(callback))
    request.session.user = '42'
    barrier.next('create', faults.rejectsAfter)
    const error: any = await called(callback => request.session.save(callback)).catch(failure => failure)
    await called(callback => request.session.save(callback))
    response.end(error.code)
  }
  const { browser, sessions } = await serve(
    { '/twice': twice },
    { manager: { store: barrier, limit: { max: 1, onLimit: 'refuse' } } },
  )
  const one = browser()
  expect(await one.go('/twice')).toMatchObject({ status: 200, body: 'ERR_SESSION_STORE' })
  expect(await one.read()).toEqual({ user: '42' })
  expect(await sessions.list(42n)).toHaveLength(1)
})
