// People with two browsers each, and what they may see. Nobody else has their account, and they do one thing after the other,
// some of them in several tabs at once: so each answer is right or wrong. After one that is missing nobody knows what became
// of it, and the browser begins anew, without cookies.
import { setTimeout as pause } from 'node:timers/promises'
import type { ServiceNode } from './nodes.ts'
import type { Users } from './users.ts'

/** What all people share, and where they tell what they met. */
export interface Scene {
  readonly nodes: readonly ServiceNode[]
  readonly users: Users
  /** Lives of sessions, in ms. */
  readonly idle: number
  readonly absolute: number
  readonly random: () => number
  /** How often what happened. */
  count(what: string, times?: number): void
  readonly violations: string[]
}

interface Reply {
  readonly status: number
  readonly body: any
}
interface Browser {
  /** By which the service names it, new at each login. */
  agent: string
  cookies: Map<string, string>
  /** `null`: it is not logged in. */
  session: {
    /** When it began, and when it was answered last. */
    readonly since: number
    seen: number
    readonly isRemembered: boolean
    /** `null`: the next look tells it. */
    count: number | null
  } | null
}

/** No answer after this time, in ms, is none at all. */
const PATIENCE = 30_000
/** What was given up may still happen within this time, in ms: at the database, at a node. */
const LATE = 15_000

export class Person {
  readonly #scene: Scene
  readonly #name: string
  readonly #browsers: readonly [Browser, Browser]
  #logins = 0

  constructor(scene: Scene, index: number) {
    this.#scene = scene
    this.#name = scene.users.add(index)
    const browser = (): Browser => ({ agent: this.#name, cookies: new Map(), session: null })
    this.#browsers = [browser(), browser()]
  }

  #pick<T>(list: readonly T[]): T {
    return list[Math.floor(this.#scene.random() * list.length)]!
  }

  #complain(browser: Browser, what: string): void {
    const at = new Date().toISOString()
    this.#scene.violations.push(`${at} ${this.#name}: ${what} (${JSON.stringify({ ...browser, now: Date.now() })})`)
  }

  /** `null`: no answer, or none of the database. */
  async #send(
    browser: Browser,
    method: string,
    path: string,
    { body, node = this.#pick(this.#scene.nodes) }: { body?: object; node?: ServiceNode } = {},
  ): Promise<Reply | null> {
    const { count } = this.#scene
    count('requests')
    const mayFail = node.isStopping
    const headers = {
      'User-Agent': browser.agent,
      Cookie: [...browser.cookies].map(pair => pair.join('=')).join('; '),
      ...(body && { 'Content-Type': 'application/json' }),
    }
    try {
      const signal = AbortSignal.timeout(PATIENCE)
      const response = await fetch(node.url + path, {
        method,
        headers,
        signal,
        ...(body && { body: JSON.stringify(body) }),
      })
      const text = await response.text()
      for (const line of response.headers.getSetCookie()) {
        const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(line) ?? []
        if (/; Max-Age=0(;|$)/i.test(line)) browser.cookies.delete(name)
        else browser.cookies.set(name, value)
      }
      const { status } = response
      if (status < 500) return { status, body: JSON.parse(text) }
      if (status === 503) count('unavailable')
      else this.#complain(browser, `${method} ${path}: ${status} ${text}`)
    } catch (error) {
      count('cut')
      if (!mayFail && !node.isStopping)
        this.#complain(browser, `${method} ${path}: ${error} ${(error as Error).cause}, and the node was not stopping`)
    }
    return null
  }

  #beginAnew(browser: Browser): void {
    this.#scene.count('begun anew')
    browser.cookies.clear()
    browser.session = null
  }

  /** Judges one answer about who is logged in. */
  #judge(browser: Browser, { status, body }: Reply): void {
    const found: string | null = status === 200 && body !== null ? body.name : null
    this.#scene.count('judged')
    if (found !== (browser.session === null ? null : this.#name))
      this.#complain(browser, found === null ? 'was logged out, and nothing had ended the session' : `is ${found}`)
  }

  /** Several tabs at once: each reads, or counts up. `beside`: a request that goes with them, whose answer is answered. */
  async #tabs(browser: Browser, tabs: readonly ('GET' | 'POST')[], beside?: string): Promise<Reply | null> {
    const { session } = browser
    const [main, ...answers] = await Promise.all([
      beside === undefined ? null : this.#send(browser, 'POST', beside),
      ...tabs.map(method => this.#send(browser, method, '/count')),
    ])
    // A logout ends the others, or not.
    if (beside === '/logout') return main
    const counted: number[] = []
    for (const [index, answer] of answers.entries()) {
      if (answer === null) continue
      this.#judge(browser, answer)
      if (answer.status !== 200 || answer.body === null || session === null) continue
      const { count } = answer.body
      const most = tabs.filter(method => method === 'POST').length
      const least = tabs[index] === 'POST' ? 1 : 0
      if (tabs[index] === 'POST') counted.push(count)
      if (session.count !== null && (count < session.count + least || count > session.count + most))
        this.#complain(browser, `the counter is ${count}: acknowledged writes were lost, or one was made twice`)
      if (most === 0) session.count = count
    }
    if (new Set(counted).size < counted.length) this.#complain(browser, `two writes made the same of it: ${counted}`)
    this.#scene.count('writes', counted.length)
    if (answers.some((answer, index) => answer === null && tabs[index] === 'POST')) this.#beginAnew(browser)
    else if (session !== null) {
      if (session.count !== null && tabs.includes('POST')) session.count += counted.length
      if (answers.some(answer => answer !== null)) session.seen = Date.now()
    }
    return main
  }

  async #logIn(browser: Browser): Promise<void> {
    const { random, users, count } = this.#scene
    browser.agent = `${this.#name}, login ${this.#logins++}`
    const isWrong = random() < 0.1
    const remember = random() < 0.3
    const password = isWrong ? 'not the password' : users.rows.get(this.#name)!.hash
    const reply = await this.#send(browser, 'POST', '/login', { body: { username: this.#name, password, remember } })
    if (reply === null) return this.#beginAnew(browser)
    if ((reply.status === 200) === isWrong) this.#complain(browser, `a login: ${reply.status} ${reply.body.error}`)
    if (reply.status !== 200) return
    count('logins')
    browser.session = { since: Date.now(), seen: Date.now(), isRemembered: remember, count: 0 }
  }

  async #logOut(browser: Browser): Promise<void> {
    const before = new Map(browser.cookies)
    const tabs = Array.from({ length: Math.floor(this.#scene.random() * 3) }, () => 'GET' as const)
    if ((await this.#tabs(browser, tabs, '/logout')) === null) return this.#beginAnew(browser)
    this.#scene.count('logouts')
    browser.session = null
    // Who has a copy of the cookies has nothing.
    const copy: Browser = { agent: browser.agent, cookies: before, session: null }
    const reply = await this.#send(copy, 'GET', '/profile')
    if (reply !== null) this.#judge(copy, reply)
  }

  /** Ends all sessions, or by a new password all but this one. */
  async #endAll(browser: Browser, isChange: boolean): Promise<void> {
    const { users, count } = this.#scene
    const oldPassword = users.rows.get(this.#name)!.hash
    const reply = isChange
      ? await this.#send(browser, 'POST', '/password', { body: { oldPassword, newPassword: `password ${Date.now()}` } })
      : await this.#send(browser, 'DELETE', '/sessions')
    if (reply === null) {
      for (const each of this.#browsers) this.#beginAnew(each)
      return void (await pause(LATE))
    }
    if (reply.status !== 200) {
      // What a token began has seen no password.
      if (reply.body.error !== 'not_fresh') this.#complain(browser, `the end of all: ${JSON.stringify(reply)}`)
      return
    }
    count('everywhere')
    for (const each of this.#browsers) if (each !== browser || !isChange) each.session = null
    if (isChange) browser.session = { since: Date.now(), seen: Date.now(), isRemembered: false, count: null }
  }

  /** The page of devices: the one in hand is among them, and may end the other. */
  async #devices(browser: Browser): Promise<void> {
    const reply = await this.#send(browser, 'GET', '/sessions')
    if (reply === null) return
    if (reply.status !== 200) return this.#judge(browser, reply)
    const list: readonly { current: boolean; label: string; key: string }[] = reply.body
    if (list.filter(({ current }) => current).length !== 1)
      this.#complain(browser, 'is not in the list of its own devices')
    const other = this.#browsers.find(each => each !== browser)!
    const listed = list.find(({ label }) => label === other.agent)
    if (other.session === null || listed === undefined || this.#scene.random() > 0.3) return
    const ended = await this.#send(browser, 'DELETE', `/sessions/${listed.key}`)
    if (ended === null) return this.#beginAnew(other)
    if (ended.status === 200) other.session = null
    else this.#complain(browser, `a session that lives could not be ended: ${ended.status}`)
  }

  /** Nobody is there until all sessions have expired: only a remember token brings the user back. */
  async #away(): Promise<void> {
    await pause(this.#scene.idle * 1.1)
    for (const browser of this.#browsers) {
      const { session } = browser
      if (session === null) continue
      browser.session = session.isRemembered
        ? { since: Date.now(), seen: Date.now(), isRemembered: true, count: null }
        : null
      const reply = await this.#send(browser, 'GET', '/profile')
      if (reply === null) this.#beginAnew(browser)
      else this.#judge(browser, reply)
    }
  }

  #forgetWhatMayHaveEnded(): void {
    const { idle, absolute } = this.#scene
    for (const browser of this.#browsers) {
      const { session } = browser
      const now = Date.now()
      if (session !== null && (now > session.seen + idle / 2 || now > session.since + absolute - idle))
        this.#beginAnew(browser)
    }
  }

  /** One thing that the person in front of a browser does. */
  async act(): Promise<void> {
    const { random } = this.#scene
    this.#forgetWhatMayHaveEnded()
    const browser = this.#pick(this.#browsers)
    const die = random()
    if (browser.session === null && die < 0.6) await this.#logIn(browser)
    else if (browser.session === null) {
      const { size } = browser.cookies
      await this.#tabs(browser, ['GET'])
      if (size === 0 && browser.cookies.size > 0) this.#complain(browser, 'got a cookie without a login')
    } else if (die < 0.6)
      await this.#tabs(
        browser,
        Array.from({ length: 1 + Math.floor(random() * 4) }, () => this.#pick(['GET', 'POST'] as const)),
      )
    else if (die < 0.78) await this.#tabs(browser, ['GET'])
    else if (die < 0.84) {
      if ((await this.#tabs(browser, ['GET', 'POST'], '/session/rotate')) === null) this.#beginAnew(browser)
    } else if (die < 0.9) await this.#devices(browser)
    else if (die < 0.94) await this.#logOut(browser)
    else if (die < 0.96) await this.#logIn(browser)
    else if (die < 0.978) await this.#endAll(browser, die < 0.97)
    else await this.#away()
  }

  /** At the end: both nodes say the same. */
  async finish(): Promise<void> {
    this.#forgetWhatMayHaveEnded()
    for (const browser of this.#browsers)
      for (const node of this.#scene.nodes) {
        const reply = await this.#send(browser, 'GET', '/profile', { node })
        if (reply === null) this.#complain(browser, 'got no answer at the end')
        else this.#judge(browser, reply)
      }
  }
}
