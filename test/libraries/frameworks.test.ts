// What Hono and Koa send of an error of ours.
import { SessionError, SessionStoreError } from 'coatcheck'
import { Hono } from 'hono'
import Koa from 'koa'
import { describe, expect, it, onTestFinished } from 'vitest'
import { listening } from '../support/listening.ts'

describe('an error of ours', () => {
  const refusal = new SessionError('ERR_SESSION_UNAUTHENTICATED', 'log in first')
  const outage = new SessionStoreError('read', 'not-applied', 'read: the store failed', { cause: new Error('hunter2') })

  it('is what Hono sends without an error handler', async () => {
    const app = new Hono()
      .get('/refusal', () => {
        throw refusal
      })
      .get('/outage', () => {
        throw outage
      })
    const answers = [await app.request('/refusal'), await app.request('/outage')]
    expect(answers.map(({ status }) => status)).toEqual([401, 503])
    expect(await answers[0]!.json()).toEqual({ error: 'ERR_SESSION_UNAUTHENTICATED', message: 'log in first' })
    expect(await answers[1]!.text()).not.toContain('hunter2')
  })

  it('is what Koa sends: the message of a refusal, of an outage the status alone', async () => {
    const app = new Koa({ env: 'test' })
    app.silent = true
    app.use(ctx => {
      throw ctx.path === '/refusal' ? refusal : outage
    })
    const { url, close } = await listening(app.callback())
    onTestFinished(() => void close())
    const answer = async (path: string) => {
      const response = await fetch(url + path)
      return [response.status, await response.text()]
    }
    expect(await answer('/refusal')).toEqual([401, 'log in first'])
    expect(await answer('/outage')).toEqual([503, 'Service Unavailable'])
  })
})
