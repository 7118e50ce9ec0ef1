// What a stranger sends to a program that was copied from a page or an example, whatever its routes are.
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import { afterAll, beforeAll, expect } from 'vitest'
import { type Answer, Client, PASSWORD, root } from '../support/example-service.ts'
import { runnable } from '../support/page-code.ts'
import { read } from '../support/pages.ts'
import { build } from '../support/scripts/build.mjs'
import { freePort, start, until } from '../support/services/process.ts'

const control = new URL('../recipes/control.mjs', import.meta.url).href

export interface Route {
  readonly method: string
  readonly path: string
}

/** The routes that the code of a program names, in any of the ways that ours are written. */
export function routesOf(code: string): Route[] {
  const found = new Map<string, Route>()
  const add = (method: string, written: string) => {
    const path = written.replaceAll(/:\w+/g, 'acme')
    found.set(`${method} ${path}`, { method, path })
  }
  for (const [, method, path] of code.matchAll(/['"`](GET|POST|PUT|PATCH|DELETE) (\/[\w/:-]*)['"`]/g))
    add(method!, path!)
  for (const [, method, path] of code.matchAll(/\.(get|post|put|patch|delete)(?:<\w+>)?\('(\/[\w/:-]*)'/g))
    add(method!.toUpperCase(), path!)
  for (const [, path] of code.matchAll(/\b(?:url|path|pathname) === '(\/[\w/-]*)'/g))
    for (const method of ['GET', 'POST']) add(method, path!)
  if (found.size === 0) for (const method of ['GET', 'POST']) add(method, '/')
  return [...found.values()]
}

const FIELDS = ['name', 'username', 'password', 'oldPassword', 'newPassword', 'article', 'code', 'csrf', 'theme']
const PASSWORDS = [PASSWORD, 'correct horse', 'lovelace', 'secret']
const SECRET = /sk-live|db\.internal|node_modules|\.m?[jt]s:\d/

/** Each field as what it must not be. */
const VALUES: unknown[] = [
  undefined,
  null,
  5,
  ['ada'],
  { toString: 'x', length: 9 },
  '\0',
  '\ud800',
  '__proto__',
  '<b>',
  'x'.repeat(1000),
]
const BODIES = [
  undefined,
  '[]',
  'null',
  '5',
  '"ada"',
  '{',
  JSON.stringify({ name: 'x'.repeat(16_000) }),
  ...VALUES.map(value => JSON.stringify(Object.fromEntries(FIELDS.map(field => [field, value])))),
  // One that is right, and one that is not.
  ...VALUES.slice(0, 5).map(value =>
    JSON.stringify({ name: 'ada', username: 'ada', password: value, newPassword: value }),
  ),
]
const FORMS = [
  `${new URLSearchParams(Object.fromEntries(FIELDS.map(field => [field, '<b>'])))}`,
  '',
  'name=ada&name=max&password[toString]=1',
  'username=ada',
  '%',
]
const JSON_TYPE = { 'Content-Type': 'application/json' }
const FORM_TYPE = { 'Content-Type': 'application/x-www-form-urlencoded' }
const EVIL = { Origin: 'https://evil.example', 'Sec-Fetch-Site': 'cross-site' }

/** What a visitor asks; all else is for a user. The other one sends some of the bodies. */
const BEGINS = /\/(?:log-?in|sign-?in|signup)$/

const isSafe = ({ method }: Route) => method === 'GET'
const rightBody = (password: string) => ({ name: 'ada', username: 'ada', password, oldPassword: password })

interface Attacked {
  readonly url: string
  output(): string
  ended(): boolean
  control(state: { isDown?: boolean; breaks?: object }): void
}

/** Asks a program all that a stranger can think of. */
class Stranger {
  readonly #program: Attacked
  readonly #routes: Route[]
  readonly #unsafe: Route[]
  /** The password that lets ada in, once it is known. */
  #passwords = PASSWORDS

  constructor(program: Attacked, routes: Route[]) {
    this.#program = program
    this.#routes = routes
    this.#unsafe = routes.filter(route => !isSafe(route))
  }

  #client = () => new Client(this.#program.url)

  /** The answer is one, in whatever way it refuses, and says nothing of what is inside. */
  #expectAnswer(what: string, { status, text, headers }: Answer, statuses?: number[]): void {
    expect([what, text.match(SECRET)]).toEqual([what, null])
    const isMarkup = headers.get('content-type')?.includes('html') && text.includes('<b>')
    expect([what, isMarkup ? text : 'names are text']).toEqual([what, 'names are text'])
    const allowed = statuses ?? (status < 500 || status === 501 ? [status] : [])
    expect(allowed, `${what}: ${status} ${text.slice(0, 200)}\n${this.#program.output().slice(-1000)}`).toContain(
      status,
    )
    expect([what, this.#program.ended()]).toEqual([what, false])
  }

  async #form(client: Client, { method, path }: Route, fields: Record<string, string>): Promise<Answer> {
    return client.send(method, path, `${new URLSearchParams(fields)}`, FORM_TYPE)
  }

  /** Whether one of its pages shows this client as a user. */
  async #isLoggedIn(client: Client): Promise<boolean> {
    if (client.cookie === '') return false
    for (const { path } of this.#routes.filter(isSafe)) {
      const { status, text } = await client.send('GET', path)
      if (status < 300 && /\bada\b|u_42/.test(text)) return true
    }
    return false
  }

  /** The second factor of the guide, where there is one. */
  async #enter(client: Client): Promise<boolean> {
    if (this.#routes.some(({ path }) => path === '/login/code'))
      await client.send('POST', '/login/code', { code: '123456' })
    return this.#isLoggedIn(client)
  }

  /** A browser in which ada has logged in, if the program lets her in by a password or without one. */
  async ada(): Promise<Client | null> {
    for (const password of this.#passwords)
      for (const route of this.#unsafe.filter(({ path }) => /log-?in|sign-?in|signup/.test(path))) {
        const client = this.#client()
        const isIn = async () => {
          const found = await this.#enter(client)
          if (found) this.#passwords = [password]
          return found
        }
        await client.send(route.method, route.path, rightBody(password))
        if (await isIn()) return client
        await this.#form(client, route, rightBody(password))
        if (await isIn()) return client
      }
    return null
  }

  /** Whether it looks at passwords: a demo that leaves the check to its reader logs anybody in. */
  async #checksPasswords(): Promise<boolean> {
    for (const { method, path } of this.#unsafe) {
      const client = this.#client()
      await client.send(method, path, rightBody('byron'))
      if (await this.#isLoggedIn(client)) return false
    }
    return true
  }

  async sendsBadBodies(): Promise<void> {
    const checks = await this.#checksPasswords()
    let ada = await this.ada()
    for (const route of this.#unsafe) {
      // A logout of before has ended her session.
      ada &&= await this.ada()
      const [most, fifth] = ada === null || BEGINS.test(route.path) ? [null, ada] : [ada, null]
      for (const [bodies, type] of [
        [BODIES, JSON_TYPE],
        [FORMS, FORM_TYPE],
      ] as const) {
        await Promise.all(bodies.map(body => this.#sendBody(route, body, type, most, checks)))
        const some = bodies.filter((_, at) => at % 5 === 0)
        await Promise.all(some.map(body => this.#sendBody(route, body, type, fifth, checks)))
      }
    }
  }

  async #sendBody(
    { method, path }: Route,
    body: string | undefined,
    type: object,
    visitor: Client | null,
    checks: boolean,
  ) {
    const client = this.#client()
    if (visitor) for (const [name, value] of visitor.cookies) client.cookies.set(name, value)
    const what = `${method} ${path} ${body?.slice(0, 80)}`
    const answer = await client.send(method, path, body, body === undefined ? {} : { ...type })
    // 503: this copy of her cookie is of before a logout, or of beside one.
    if (!visitor || answer.status !== 503) this.#expectAnswer(what, answer)
    // What it kept of a name is text in its pages.
    if (body?.includes('<b>') || body?.includes('%3Cb'))
      for (const route of this.#routes.filter(isSafe))
        this.#expectAnswer(`GET ${route.path} after ${what}`, await client.send('GET', route.path))
    if (checks && !visitor) expect([what, await this.#isLoggedIn(client)]).toEqual([what, false])
  }

  /** A request as it stands, or the start of one. */
  async #raw(text: string): Promise<void> {
    const socket = connect(Number(new URL(this.#program.url).port), '127.0.0.1')
    socket.on('error', () => {}).resume()
    socket.end(text)
    await once(socket, 'close')
  }

  async sendsWhatNoBrowserSends(): Promise<void> {
    for (const { path } of this.#routes) {
      const head = await this.#client().send('HEAD', path)
      this.#expectAnswer(`HEAD ${path}`, head)
    }
    const host = 'Host: localhost\r\nConnection: close'
    const upgrade = 'Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: x'
    for (const head of [
      `TRACE / HTTP/1.1\r\n${host}`,
      'GET / HTTP/1.1\r\nHost: a b\r\nConnection: close',
      'POST / HTTP/1.1\r\nHost: [\r\nConnection: close\r\nContent-Length: 0',
      `GET //[ HTTP/1.1\r\n${host}`,
      `GET http://[/ HTTP/1.1\r\n${host}`,
      `OPTIONS * HTTP/1.1\r\n${host}`,
      `CONNECT a:1 HTTP/1.1\r\n${host}`,
      `PROPFIND / HTTP/1.1\r\n${host}`,
      `GET /%E0%A4%A HTTP/1.1\r\n${host}`,
      `GET /__proto__ HTTP/1.1\r\n${host}`,
      `GET / HTTP/1.1\r\nHost: localhost\r\nOrigin: https://evil.example\r\n${upgrade}`,
      `POST / HTTP/1.1\r\nHost: a b\r\n${upgrade}`,
    ]) {
      await this.#raw(`${head}\r\n\r\n`)
      expect([head, this.#program.ended(), this.#program.output().match(/\n {4}at .*\n+Node\.js v/)]).toEqual([
        head,
        false,
        null,
      ])
    }
    this.#expectAnswer('GET / afterwards', await this.#client().send('GET', this.#routes[0]!.path))
  }

  /** What a call inside throws is for the log, its status too; an outage is a 503 where the session is asked. */
  async breaksItsInside(): Promise<void> {
    const ada = await this.ada()
    for (const state of [
      { breaks: { status: 401, statusCode: 401 } },
      { breaks: { status: 502, code: 'db.internal' } },
      { breaks: { status: 'fail', statusCode: 404 } },
      { breaks: { extensions: { code: 'UNAUTHENTICATED' } } },
      { isDown: true },
    ]) {
      this.#program.control(state)
      for (const { method, path } of this.#routes)
        await Promise.all(
          [this.#client(), ada].map(async client => {
            if (!client) return
            const body = method === 'GET' ? undefined : rightBody(this.#passwords[0]!)
            const what = `${method} ${path}, ${JSON.stringify(state)}`
            const statuses = [200, 201, 204, 303, 400, 401, 403, 404, 405, 409, 415, 500, 501, 503]
            this.#expectAnswer(what, await client.send(method, path, body), statuses)
          }),
        )
      this.#program.control({})
    }
  }

  /** A page of another origin is refused before anything is done. */
  async comesFromAnotherOrigin(): Promise<void> {
    for (const { method, path } of this.#unsafe) {
      const client = this.#client()
      const planted = { name: 'planted', username: 'planted', password: 'correct horse' }
      for (const body of [planted, ...this.#passwords.map(rightBody)]) {
        const answer = await client.send(method, path, body, EVIL)
        this.#expectAnswer(`${method} ${path} of another origin`, answer, [400, 403, 404])
      }
      expect([path, await this.#isLoggedIn(client)]).toEqual([path, false])
    }
    if (!this.#routes.some(({ path }) => path === '/signup')) return
    const planted = this.#client()
    for (const { method, path } of this.#unsafe.filter(({ path }) => /log-?in/.test(path)))
      expect((await planted.send(method, path, { name: 'planted', password: 'correct horse' })).status).not.toBe(200)
  }
}

export interface Program {
  readonly name: string
  /** Of a page; an example is run where it is. */
  readonly code?: string
  readonly routes: Route[]
}

let folder: string
/** For a file that attacks programs: they run inside of the project, where `coatcheck` is the package itself. */
export function useAttacks(): void {
  beforeAll(async () => {
    await build()
    mkdirSync(join(root, '.tmp'), { recursive: true })
    folder = mkdtempSync(join(root, '.tmp/attacked-'))
  }, 240_000)
  afterAll(() => folder && rmSync(folder, { recursive: true, force: true }))
}

let number = 0
/** Runs a program on a free port until `stop`. Without code it is an example, which is run where it is. */
export async function run(name: string, code: string | undefined, env: Record<string, string> = {}) {
  const [port, at] = [await freePort(), ++number]
  const state = join(folder, `control-${at}.json`)
  const rule: Attacked['control'] = now => {
    writeFileSync(`${state}.new`, JSON.stringify(now))
    renameSync(`${state}.new`, state)
  }
  rule({})
  const file = code === undefined ? join(root, name) : join(folder, `${at}.mjs`)
  if (code !== undefined) writeFileSync(file, runnable(code).replaceAll(/\b3000\b/g, `${port}`))
  const running = start(process.execPath, ['--import', control, file], {
    cwd: root,
    env: { ...process.env, PORT: `${port}`, FRONT_PORT: '0', CONTROL: state, ...env },
  })
  const url = `http://127.0.0.1:${port}`
  await until(`${name} listens`, () => fetch(url), { server: running })
  return { ...running, url, control: rule }
}

export async function attack({ name, code, routes }: Program, env: Record<string, string> = {}): Promise<void> {
  const running = await run(name, code, env)
  try {
    const stranger = new Stranger(running, routes)
    await stranger.sendsWhatNoBrowserSends()
    await stranger.sendsBadBodies()
    await stranger.breaksItsInside()
    // A store under another library's middleware has no guard, as docs/connect.md says, and a token that no browser sends needs none.
    if (!/coatcheck\/connect'|Authorization: Bearer/.test(code ?? read(name))) await stranger.comesFromAnotherOrigin()
  } finally {
    await running.stop('SIGKILL')
  }
}
