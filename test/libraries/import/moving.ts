// Services that run on another library and are replaced while their users go on clicking: browsers that send several requests
// at a time, and nodes of the new service.
import type { RequestListener } from 'node:http'
import { SessionManager, type Store } from 'coatcheck'
import { type OldSessions, type SessionImporterOptions, sessionImporter } from 'coatcheck/import'
import { nodeVisits } from 'coatcheck/node'
import express from 'express'
import { afterEach, expect } from 'vitest'
import { listening, sender } from '../../support/listening.ts'
import { Jar } from '../../support/parallel.ts'

/** What a test has started. */
export const open: (() => unknown)[] = []
afterEach(async () => {
  while (open.length > 0) await open.pop()!()
})

export interface OldData {
  user?: { id: number; name: string }
}
export type ToLogin<T> = SessionImporterOptions<
  Record<string, unknown>,
  'bigint',
  Record<string, unknown>,
  T
>['toLogin']
const toLogin: ToLogin<OldData> = ({ user }) => (user ? { user } : null)

/** One port, whose service can be replaced while requests come in. */
export async function front() {
  let serve: RequestListener = (_, response) => response.end()
  const { port, close } = await listening((request, response) => serve(request, response))
  open.push(close)
  return {
    port,
    send: sender(port),
    replaceBy(listener: RequestListener) {
      serve = listener
    },
  }
}
export type Front = Awaited<ReturnType<typeof front>>

/** Nodes of the new service, each with a manager of its own, by turns. */
export function newService<T = OldData>(
  store: Store,
  nodes: number,
  from: OldSessions<T>,
  whose: ToLogin<T> = toLogin as never,
) {
  const made = Array.from({ length: nodes }, () => {
    const sessions = new SessionManager({ store, storeTimeout: '20s' })
    open.push(() => sessions.close())
    const visits = nodeVisits(sessions, { cookie: { secure: false } })
    const importer = sessionImporter(sessions, { from, toLogin: whose })
    const app = express()
    app.use(importer.middleware(visits))
    app.get('/profile', async (request, response) => {
      const { user } = await visits.of(request, response).requireUser()
      response.send(user.name)
    })
    app.post('/logout', async (request, response) => {
      await visits.of(request, response).logOut()
      response.send('bye')
    })
    return { sessions, app }
  })
  let turn = 0
  const listener: RequestListener = (request, response) => {
    turn += 1
    made[turn % nodes]!.app(request, response)
  }
  return { listener, sessions: made[0]!.sessions }
}

/** One browser: what it was answered, and its cookies. */
export class Browser {
  readonly jar = new Jar()
  readonly statuses: number[] = []
  onAnswer = () => {}
  readonly #front: Front

  constructor(to: Front) {
    this.#front = to
  }

  async ask(path: string, method = 'GET') {
    const cookie = [...this.jar.cookies].map(([name, value]) => `${name}=${value}`).join('; ')
    const reply = await this.#front.send(path, { method, headers: cookie === '' ? {} : { cookie } })
    this.jar.apply(reply.cookies)
    this.statuses.push(reply.status)
    this.onAnswer()
    return reply
  }
}

export async function loggedIn(to: Front, count: number): Promise<Browser[]> {
  const browsers = Array.from({ length: count }, () => new Browser(to))
  await Promise.all(browsers.map((browser, at) => browser.ask(`/login/${at + 1}`, 'POST')))
  for (const browser of browsers) expect(browser.statuses.pop()).toBe(200)
  return browsers
}

/** Every browser asks for its page and what belongs to it, several requests at a time, until `isOver`. */
export async function clickOn(browsers: readonly Browser[], isOver: () => boolean): Promise<void> {
  await Promise.all(
    browsers.map(async browser => {
      do await Promise.all(Array.from({ length: 6 }, () => browser.ask('/profile')))
      while (!isOver())
    }),
  )
}

/** Replaces the old service by the new one under load; answers when each browser has met the new one twice. */
export async function replaceUnderLoad(
  to: Front,
  browsers: readonly Browser[],
  listener: RequestListener,
): Promise<void> {
  let isOver = false
  const clicking = clickOn(browsers, () => isOver)
  const answers = () => Math.min(...browsers.map(({ statuses }) => statuses.length))
  const until = (count: number) =>
    new Promise<void>(resolve => {
      const look = () => void (answers() >= count && resolve())
      for (const browser of browsers) browser.onAnswer = look
    })
  await until(6)
  to.replaceBy(listener)
  await until(answers() + 18)
  isOver = true
  await clicking
}

/** `kept`: cookies that a browser may keep beside ours. */
export async function expectAllMoved(
  browsers: readonly Browser[],
  sessions: SessionManager,
  kept: readonly string[] = [],
) {
  const refused = browsers.flatMap(({ statuses }) => statuses).filter(status => status !== 200)
  expect(refused).toEqual([])
  for (const [at, browser] of browsers.entries()) {
    expect(await sessions.list(BigInt(at + 1)), `sessions of user ${at + 1}`).toHaveLength(1)
    expect([...browser.jar.cookies.keys()].filter(name => !kept.includes(name))).toEqual(['session_id'])
    expect((await browser.ask('/profile')).body).toBe(`user ${at + 1}`)
  }
  // And out again, for good.
  const [first] = browsers
  const left = new Map(first!.jar.cookies)
  expect((await first!.ask('/logout', 'POST')).status).toBe(200)
  for (const [name, value] of left) first!.jar.cookies.set(name, value)
  expect((await first!.ask('/profile')).status).toBe(401)
}
