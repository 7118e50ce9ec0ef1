// examples/step-up.mjs and examples/act-as.mjs, as a handler uses them.
import { SessionManager } from 'coatcheck'
import { fetchVisits } from 'coatcheck/fetch'
import { MemoryStore } from 'coatcheck/stores/memory'
import { describe, expect, it, vi } from 'vitest'
import { actAs, acting, requireWho, stopActing } from '../../examples/act-as.mjs'
import { confirm, proofs, requireProof } from '../../examples/step-up.mjs'

const MINUTE = 60_000

function service() {
  vi.useFakeTimers({ toFake: ['Date'], now: 1_800_000_000_000 })
  const sessions = new SessionManager({
    store: new MemoryStore(),
    rememberFor: '30d',
    limit: { max: 2, onLimit: 'refuse' },
    initial: () => ({ ...proofs(), ...acting(), cart: [] as string[] }),
  })
  const visits = fetchVisits(sessions)
  type Visit = Parameters<Parameters<typeof visits.handle>[1]>[0]
  /** A browser, or whoever has a copy of its cookie. */
  class Browser {
    cookie = ''
    /** What the handler answers, or its error. */
    async ask<R>(handler: (visit: Visit) => Promise<R>): Promise<R> {
      let answer: { value: R } | { error: unknown } | undefined
      const request = new Request('https://shop.example/', { method: 'POST', headers: { Cookie: this.cookie } })
      const response = await visits.handle(request, async visit => {
        answer = await handler(visit).then(
          value => ({ value }),
          (error: unknown) => ({ error }),
        )
        return new Response()
      })
      for (const line of response.headers.getSetCookie())
        if (line.startsWith('session_id=')) this.cookie = line.split(';')[0]!
      if (answer && 'value' in answer) return answer.value
      throw (answer as { error: unknown }).error
    }
  }
  const logIn = async (name: string, id: bigint) => {
    const browser = new Browser()
    await browser.ask(visit => visit.logIn({ user: { id, name } }))
    return browser
  }
  const copyOf = (browser: Browser) => Object.assign(new Browser(), { cookie: browser.cookie })
  return { sessions, logIn, copyOf }
}

describe('a proof', () => {
  it('is asked for by name, and lasts as long as the handler says', async () => {
    const { logIn } = service()
    const ada = await logIn('ada', 42n)
    const pay = () => ada.ask(visit => requireProof(visit, ['pwd', 'otp'], 10 * MINUTE))
    await expect(pay()).rejects.toMatchObject({ status: 401, missing: ['pwd', 'otp'] })
    await ada.ask(visit => confirm(visit, 'pwd'))
    await expect(pay()).rejects.toMatchObject({ message: 'confirm with otp', missing: ['otp'] })
    await ada.ask(visit => confirm(visit, 'otp'))
    await expect(pay()).resolves.toMatchObject({ user: { name: 'ada' } })
    vi.setSystemTime(Date.now() + 10 * MINUTE + 1)
    await expect(pay()).rejects.toMatchObject({ missing: ['pwd', 'otp'] })
  })

  it('is not a thief’s who has copied the cookie before it was given', async () => {
    const { logIn, copyOf } = service()
    const ada = await logIn('ada', 42n)
    const thief = copyOf(ada)
    await ada.ask(visit => confirm(visit, 'otp'))
    await expect(thief.ask(visit => requireProof(visit, ['otp'], MINUTE))).rejects.toMatchObject({ status: 401 })
    await expect(ada.ask(visit => requireProof(visit, ['otp'], MINUTE))).resolves.toBeTruthy()
  })

  it('given twice at once is refused once, and works at the next try', async () => {
    const { logIn, copyOf } = service()
    const ada = await logIn('ada', 42n)
    const tab = copyOf(ada)
    const both = await Promise.allSettled([
      ada.ask(visit => confirm(visit, 'pwd')),
      tab.ask(visit => confirm(visit, 'otp')),
    ])
    expect(both.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected'])
    const { reason } = both.find(each => each.status === 'rejected')!
    expect(reason).toMatchObject({ status: 409 })
    const late = both[0].status === 'rejected' ? { browser: tab, method: 'pwd' } : { browser: ada, method: 'otp' }
    await late.browser.ask(visit => confirm(visit, late.method))
    await expect(late.browser.ask(visit => requireProof(visit, ['pwd', 'otp'], MINUTE))).resolves.toBeTruthy()
  })

  it('ends with the login', async () => {
    const { logIn } = service()
    const ada = await logIn('ada', 42n)
    await ada.ask(visit => confirm(visit, 'otp'))
    await ada.ask(visit => visit.logIn({ user: { id: 42n, name: 'ada' } }))
    await expect(ada.ask(visit => requireProof(visit, ['otp'], MINUTE))).rejects.toMatchObject({ missing: ['otp'] })
  })

  it('is given to nobody who has logged out meanwhile', async () => {
    const { logIn, sessions } = service()
    const ada = await logIn('ada', 42n)
    await expect(
      ada.ask(async visit => {
        await visit.requireUser()
        await sessions.invalidateUser(42n)
        return confirm(visit, 'otp')
      }),
    ).rejects.toMatchObject({ status: 409 })
    await expect(ada.ask(visit => confirm(visit, 'otp'))).rejects.toMatchObject({ status: 401 })
  })
})

describe('support that acts as a user', () => {
  const max = { id: 7n, name: 'max' }
  const mayAct = ({ name }: { name: string }) => name === 'support'
  const beMax = (browser: Awaited<ReturnType<ReturnType<typeof service>['logIn']>>) =>
    browser.ask(visit => actAs(visit, max, mayAct))

  it('sees what the user sees, says who it is, and goes back', async () => {
    const { logIn } = service()
    const support = await logIn('support', 1n)
    await expect(support.ask(requireWho)).resolves.toEqual({ user: expect.objectContaining({ id: 1n }), actor: null })
    await beMax(support)
    await expect(support.ask(requireWho)).resolves.toMatchObject({ user: max, actor: { id: 1n, name: 'support' } })
    // A handler that forgot it sees the account of the support.
    await expect(support.ask(visit => visit.requireUser())).resolves.toMatchObject({ user: { id: 1n } })
    await support.ask(stopActing)
    await expect(support.ask(requireWho)).resolves.toMatchObject({ user: { id: 1n }, actor: null })
  })

  it('is none of the user’s sessions: neither listed, nor counted, nor remembered', async () => {
    const { logIn, sessions } = service()
    const support = await logIn('support', 1n)
    await beMax(support)
    expect(await sessions.list(7n)).toEqual([])
    for (const _ of [1, 2]) await logIn('max', 7n)
    await expect(logIn('max', 7n)).rejects.toMatchObject({ code: 'ERR_SESSION_LIMIT' })
    expect(await sessions.list(7n)).toHaveLength(2)
  })

  it.each(['logs out', 'is logged out everywhere'])('ends when the support %s', async how => {
    const { logIn, copyOf, sessions } = service()
    const support = await logIn('support', 1n)
    await beMax(support)
    const copy = copyOf(support)
    await (how === 'logs out' ? support.ask(visit => visit.logOut()) : sessions.invalidateUser(1n))
    await expect(copy.ask(requireWho)).rejects.toMatchObject({ status: 401 })
  })

  it('ends after an hour, and with the ID that was copied before', async () => {
    const { logIn, copyOf } = service()
    const support = await logIn('support', 1n)
    const thief = copyOf(support)
    await beMax(support)
    await expect(thief.ask(requireWho)).rejects.toMatchObject({ status: 401 })
    for (let minutes = 0; minutes <= 60; minutes += 20) {
      await support.ask(requireWho)
      vi.setSystemTime(Date.now() + 20 * MINUTE)
    }
    await expect(support.ask(requireWho)).rejects.toMatchObject({ message: 'acting is over' })
    await expect(support.ask(requireWho)).resolves.toMatchObject({ user: { id: 1n }, actor: null })
  })

  it('has to be allowed, to have logged in lately, to be another, and to stop first', async () => {
    const { logIn } = service()
    await expect(logIn('ada', 42n).then(beMax)).rejects.toMatchObject({ status: 403 })
    const support = await logIn('support', 1n)
    await expect(support.ask(visit => actAs(visit, { id: 1n, name: 'support' }, mayAct))).rejects.toMatchObject({
      status: 403,
    })
    await beMax(support)
    await expect(beMax(support)).rejects.toMatchObject({ status: 409 })
    await expect(support.ask(requireWho)).resolves.toMatchObject({ user: max })
    await support.ask(stopActing)
    vi.setSystemTime(Date.now() + 16 * MINUTE)
    await expect(beMax(support)).rejects.toMatchObject({ code: 'ERR_SESSION_NOT_FRESH' })
  })
})
