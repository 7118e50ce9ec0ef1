// What stands between a request and its visit: frameworks, and whoever has read the body.
import { SessionManager } from 'coatcheck'
import { fetchVisits } from 'coatcheck/fetch'
import { MemoryStore } from 'coatcheck/stores/memory'
import express from 'express'
import { describe, expect, it } from 'vitest'
import { askFramework, JSON_BODY, listen } from '../support/framework-cases.ts'

const user = { id: 42n, name: 'ada' }

describe('Express', () => {
  askFramework(handler => {
    const app = express().use(express.json())
    app.post('/', async (request, response) => {
      expect(request.body).toEqual({ username: 'ada' })
      await handler(request, response)
    })
    return listen(app)
  })
})

describe('whatever works with Request and Response', () => {
  const request = () => new Request('https://shop.example/', JSON_BODY)
  function setUp() {
    const sessions = new SessionManager({ store: new MemoryStore() })
    return { sessions, fetching: fetchVisits(sessions) }
  }

  it('has the visit of a request whose body was read before', async () => {
    const { fetching } = setUp()
    const used = request()
    await used.json()
    const answer = await fetching.handle(used, async visit => {
      await visit.logIn({ user })
      return new Response('logged in')
    })
    expect(answer.headers.getSetCookie()).toHaveLength(1)
  })

  it('sends the cookie where the handler answers that error', async () => {
    const { sessions, fetching } = setUp()
    const used = request()
    const answer = await fetching.handle(used, async visit => {
      await used.json()
      await visit.logIn({ user })
      return used.json().then(Response.json, () => new Response(null, { status: 400 }))
    })
    expect([answer.status, answer.headers.getSetCookie().length]).toEqual([400, 1])
    expect(await sessions.list(user.id)).toHaveLength(1)
  })
})
