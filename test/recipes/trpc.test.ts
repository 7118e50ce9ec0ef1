import { expect, it } from 'vitest'
import { Client, PASSWORD } from '../support/example-service.ts'
import { trpc } from './dialects.ts'
import { walk } from './walk.ts'

walk('the recipe for tRPC', 'trpc', { dialect: trpc }, running => {
  const credentials = { 0: { username: 'ada', password: PASSWORD } }

  it('answers several calls of one request from one visit', async () => {
    const ada = new Client(running().url)
    const both = await ada.send('POST', '/login,add?batch=1', { ...credentials, 1: { article: 'hat' } })
    expect([both.status, both.headers.getSetCookie().length]).toEqual([200, 1])
    const read = await ada.send('GET', '/profile,cart?batch=1')
    expect(read.body[0].result.data).toEqual({ id: '42', name: 'ada' })
    expect(read.body[1].result.data.cart).toBeTypeOf('object')
  })

  it('logs in once in a request, however many calls it has', async () => {
    const wrong = { username: 'ada', password: 'wrong' }
    const calls = [...Array.from({ length: 99 }, () => wrong), credentials[0]]
    const guesses = await new Client(running().url).send('POST', `/${calls.map(() => 'login')}?batch=1`, { ...calls })
    expect(guesses.headers.getSetCookie()).toEqual([])
    const told = guesses.body.map(({ error }: { error: { message: string } }) => error.message)
    expect(told).toEqual(['wrong_credentials', ...Array.from({ length: 99 }, () => 'one_login_per_request')])
  })

  it('begins no session in a stream, whose head is sent before the call ends', async () => {
    const answer = await fetch(`${running().url}/login?batch=1`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json', 'trpc-accept': 'application/jsonl' },
      body: JSON.stringify(credentials),
    })
    const text = await answer.text()
    expect([answer.status, answer.headers.getSetCookie()]).toEqual([200, []])
    expect(text).toContain('ERR_SESSION_HEADERS_SENT')
    expect(text).not.toContain('"name":"ada"')
  })
})
