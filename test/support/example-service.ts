// Starts an example as a process of its own and speaks HTTP to it, as a user's machine would.
import { once } from 'node:events'
import { type IncomingMessage, request as send } from 'node:http'
import { fileURLToPath } from 'node:url'
import { headersOf } from './listening.ts'
import { build } from './scripts/build.mjs'
import { start, until } from './services/process.ts'

export const root = fileURLToPath(new URL('../../', import.meta.url))
/** For `node --import`. */
export const cheapPasswords = new URL('cheap-passwords.mjs', import.meta.url).href

export interface Service {
  readonly url: string
  output(): string
  stop(signal?: NodeJS.Signals): Promise<void>
  /** The exit code, once it has stopped. */
  code(): number | null
}

/** Runs `node examples/<name>` on a free port until `stop`; the address is what it prints. */
export async function startExample(name: string, env: Record<string, string> = {}): Promise<Service> {
  await build()
  const running = start(process.execPath, ['--import', cheapPasswords, `examples/${name}`], {
    cwd: root,
    env: { ...process.env, PORT: '0', ...env },
  })
  const url = await until(`${name} listens`, () => {
    if (running.child.exitCode !== null) return null
    const address = /https?:\/\/[\w.[\]:]+:\d+/.exec(running.output())?.[0]
    const port = /port: (\d+)/.exec(running.output())?.[1]
    if (!address && !port) throw new Error(running.output())
    return address ?? `http://127.0.0.1:${port}`
  })
  if (url === null) throw new Error(`${name} ended at once: ${running.output()}`)
  return { url, output: running.output, stop: running.stop, code: () => running.child.exitCode }
}

/** Runs an example that cannot start; answers what it printed and its exit code. */
export async function runExample(
  name: string,
  env: Record<string, string>,
  cwd = root,
): Promise<{ output: string; code: number }> {
  await build()
  const running = start(process.execPath, [`examples/${name}`], { cwd, env: { ...process.env, ...env } })
  const code = await new Promise<number | null>(resolve => running.child.once('close', resolve))
  return { output: running.output(), code: code ?? -1 }
}

export interface Answer {
  readonly status: number
  readonly headers: Headers
  readonly text: string
  readonly body: any
}

const LIKE_FETCH = { Accept: '*/*', 'Accept-Language': '*', 'Sec-Fetch-Mode': 'cors' }

/** A browser as far as cookies go: keeps what it is given, sends what it has. */
export class Client {
  readonly cookies = new Map<string, string>()
  readonly url: string
  readonly agent: string

  constructor(url: string, agent = 'test') {
    this.url = url
    this.agent = agent
  }

  get cookie(): string {
    return [...this.cookies].map(([name, value]) => `${name}=${value}`).join('; ')
  }

  async send(method: string, path: string, body?: unknown, headers: Record<string, string> = {}): Promise<Answer> {
    const isRaw = typeof body === 'string' || body instanceof Uint8Array
    // Half of the time of `fetch`, of which an attack is hundreds.
    const request = send(this.url + path, {
      method,
      agent: false,
      headers: {
        ...LIKE_FETCH,
        'User-Agent': this.agent,
        ...(this.cookies.size > 0 && { Cookie: this.cookie }),
        ...(body !== undefined && !isRaw && { 'Content-Type': 'application/json' }),
        ...headers,
      },
    })
    // What is answered before it has read the body may close the connection under the rest of it.
    request.on('error', () => {}).end(isRaw ? body : JSON.stringify(body))
    const [response] = (await once(request, 'response')) as [IncomingMessage]
    const received = headersOf(response)
    for (const line of received.getSetCookie()) {
      const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(line) ?? []
      if (/; Max-Age=0(;|$)/i.test(line)) this.cookies.delete(name)
      else this.cookies.set(name, value)
    }
    const text = Buffer.concat(await response.toArray()).toString()
    const isJson = /^application\/(?:[\w-]+\+)?json\b/.test(received.get('content-type') ?? '')
    return { status: response.statusCode!, headers: received, text, body: isJson && text ? JSON.parse(text) : null }
  }

  login(username = 'ada', password = PASSWORD, remember?: boolean): Promise<Answer> {
    return this.send('POST', '/login', { username, password, ...(remember !== undefined && { remember }) })
  }

  /** The name of whoever is logged in, or `null`. */
  async whoami(): Promise<string | null> {
    const { status, body } = await this.send('GET', '/profile')
    if (status !== 200) throw new Error(`GET /profile: ${status}`)
    return body === null ? null : body.name
  }
}

export const PASSWORD = 'correct horse battery staple'

/** The cost of a password hash, for `openUsers`: hashing passwords is slow on purpose. */
export const CHEAP = { N: 2, r: 1, p: 1, maxmem: 2 ** 20 }
