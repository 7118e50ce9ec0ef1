// The service of connect-service.ts on Express, and where test/libraries is installed (`npm run test:all` does) on other
// libraries, too; and what is asked of each.
import express from 'express'
import expressSession from 'express-session'
import { Gates, type Start, withExpress } from '../support/connect-service.ts'
import { isInstalled } from '../support/scripts/install.mjs'

const others = async () => (await import('../libraries/connect-apps.ts')).OTHER_APPS

export const APPS: Readonly<Record<string, Start>> = {
  'express-session 1.19, Express 5': withExpress(express, expressSession),
  ...(isInstalled('test/libraries') && (await others())),
}

/** A client that keeps its cookies in the order in which the answers arrive. */
export class ConnectBrowser {
  readonly cookies = new Map<string, string>()
  readonly #port: number

  constructor(port: number, cookies: Iterable<[string, string]> = []) {
    this.#port = port
    this.cookies = new Map(cookies)
  }

  /** Somebody with a copy of the cookies. */
  copy(): ConnectBrowser {
    return new ConnectBrowser(this.#port, this.cookies)
  }

  async go(path: string, port = this.#port): Promise<{ status: number; body: any }> {
    const cookie = [...this.cookies].map(([name, value]) => `${name}=${value}`).join('; ')
    const response = await fetch(`http://127.0.0.1:${port}${path}`, { headers: cookie === '' ? {} : { cookie } })
    for (const line of response.headers.getSetCookie()) {
      const [name, value] = /^([^=]*)=([^;]*)/.exec(line)!.slice(1) as [string, string]
      const isCleared = value === '' || /expires=Thu, 01 Jan 1970/i.test(line)
      if (isCleared) this.cookies.delete(name)
      else this.cookies.set(name, value)
    }
    const text = await response.text()
    return { status: response.status, body: text === '' ? null : parsed(text) }
  }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}

export async function startApp(name: string, store: unknown, options?: object) {
  const gates = new Gates()
  const { port, close } = await APPS[name]!(store, gates, options)
  return { port, gates, close, browser: () => new ConnectBrowser(port) }
}

/** Runs `work` so many times, a hundred at once, and counts the answers that are true. */
async function count(tries: number, work: (index: number) => Promise<boolean>): Promise<number> {
  let next = 0
  let found = 0
  const worker = async () => {
    while (next < tries) {
      const index = next
      next += 1
      if (await work(index)) found += 1
    }
  }
  await Promise.all(Array.from({ length: Math.min(100, tries) }, worker))
  return found
}

type Service = Awaited<ReturnType<typeof startApp>>

/** A request is under way and its browser logs out; then it writes and answers. How often is a copy of the cookies logged in? */
export const countRevived = ({ browser, gates }: Service, tries: number): Promise<number> =>
  count(tries, async index => {
    const one = browser()
    await one.go(`/login?user=${index + 1}`)
    const copy = one.copy()
    const gate = `revived ${index}`
    const late = copy.copy()
    const writing = late.go(`/write?key=a&gate=${gate}`)
    await gates.arrived(gate)
    await one.go('/logout')
    gates.open(gate)
    const { body } = await writing
    if (body !== String(index + 1)) throw new Error(`the request under way was not logged in: ${JSON.stringify(body)}`)
    const seen = [await late.go('/read'), await copy.go('/read'), await one.go('/read')]
    return seen.some(({ body: session }) => session?.user !== undefined)
  })

/** Two requests are under way, and each writes a key of its own that is there already. How often is one of the two lost? */
export const countLost = ({ browser, gates }: Service, tries: number): Promise<number> =>
  count(tries, async index => {
    const one = browser()
    await one.go(`/login?user=${index + 1}`)
    const names = ['a', 'b'].map(key => ({ key, gate: `lost ${key} ${index}` }))
    for (const { key } of names) await one.go(`/write?key=${key}&value=old`)
    const writing = names.map(({ key, gate }) => one.go(`/write?key=${key}&gate=${gate}`))
    await Promise.all(names.map(({ gate }) => gates.arrived(gate)))
    for (const { gate } of names) gates.open(gate)
    await Promise.all(writing)
    const { body } = await one.go('/read')
    return body?.user !== String(index + 1) || body.a !== 'written' || body.b !== 'written'
  })
