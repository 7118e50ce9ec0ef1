// A walk through the pages of a recipe, with forms and without scripts: what a framework does around a visit.
import { describe, expect, it } from 'vitest'
import { type Answer, Client, PASSWORD } from '../support/example-service.ts'
import type { RunningRecipe } from './recipe.ts'

const CREDENTIALS = { username: 'ada', password: PASSWORD }

/** What the page says, and its text. */
export interface Page {
  readonly answer: Answer
  readonly name: string | null
  readonly coats: number
  readonly says: (text: string) => boolean
}

/** A browser without scripts: it sends the form of a button, and follows redirects. */
export class Reader extends Client {
  #page: Answer | null = null

  override send(method: string, path: string, body?: unknown, headers: Record<string, string> = {}): Promise<Answer> {
    return super.send(method, path, body, { Accept: 'text/html', ...headers })
  }

  async open(path = '/'): Promise<Page> {
    return this.#show(await this.send('GET', path))
  }

  /** Clicks a button of the page that is shown, or of a page opened for it. */
  async click(button: string, fields: Record<string, string> = {}, more: Record<string, string> = {}): Promise<Page> {
    const page = this.#page ?? (await this.open()).answer
    const form = [...page.text.matchAll(/<form[^>]*>[\s\S]*?<\/form>/g)].find(([text]) => text.includes(`>${button}<`))
    expect(form, `${button} in ${page.text}`).toBeDefined()
    const body = new FormData()
    for (const [, name, value] of form![0].matchAll(/<input type="hidden" name="([^"]+)"(?: value="([^"]*)")?/g))
      body.set(name!, value ?? '')
    for (const [name, value] of Object.entries(fields)) body.set(name, value)
    const path = /<form[^>]* action="([^"]*)"/.exec(form![0])?.[1] ?? ''
    // A form without an encoding is sent as URL-encoded text.
    const isMultipart = /<form[^>]* enctype="multipart/i.test(form![0])
    const request = new Request(this.url, {
      method: 'POST',
      body: isMultipart ? body : new URLSearchParams(body as any),
    })
    const type = { 'Content-Type': request.headers.get('content-type')! }
    const address = path.startsWith('?') ? `/${path}` : path || '/'
    const sent = new Uint8Array(await request.arrayBuffer())
    const answer = await this.send('POST', address, sent, { ...type, Origin: this.url, ...more })
    return this.#show(answer)
  }

  async #show(first: Answer): Promise<Page> {
    let answer = first
    // The response to an unsafe request may set cookies: each name once, since the browser keeps the last one.
    const names = first.headers.getSetCookie().map(line => line.split('=', 1)[0])
    expect(new Set(names).size, `${names}`).toBe(names.length)
    const target = answer.headers.get('location')
    if (answer.status === 303 || answer.status === 302)
      answer = await this.send('GET', new URL(target!, this.url).href.slice(this.url.length))
    const text = answer.text.replaceAll(/<!--.*?-->/g, '')
    this.#page = answer.status === 200 ? answer : null
    return {
      answer: { ...answer, headers: first.headers },
      name: /Logged in: (\w+)/.exec(text)?.[1] ?? null,
      coats: Number(/Coats: (\d+)/.exec(text)?.[1] ?? Number.NaN),
      says: words => text.replaceAll(/<script[\s\S]*?<\/script>/g, '').includes(words),
    }
  }
}

/**
 * Describes the walk through the pages of a recipe. `statusOf`: what the framework answers where a form's handler throws, since
 * not every one lets an error say its status; `more` are cases of this framework alone.
 */
export function walkPages(
  running: () => RunningRecipe,
  statusOf: { crossOrigin?: number; storeDown?: number } = {},
  more: (reader: () => Reader) => void = () => {},
): void {
  const { crossOrigin = 403, storeDown = 503 } = statusOf
  describe('its pages', () => {
    const reader = () => new Reader(running().url)
    const names = ({ answer }: Page) => answer.headers.getSetCookie().map(line => line.split('=', 1)[0])

    it('show a visitor what everyone sees, and give them no cookie', async () => {
      const page = await reader().open()
      expect([page.answer.status, page.name, page.coats, names(page)]).toEqual([200, null, 0, []])
    })

    it('keep what a visitor did before the login, under a new ID, and greet them once', async () => {
      const ada = reader()
      const added = await ada.click('Add a coat')
      expect([added.coats, added.name, names(added)]).toEqual([1, null, ['session_id']])
      const before = ada.cookie
      const login = await ada.click('Log in', CREDENTIALS)
      expect([login.name, login.coats, login.says('Welcome.'), names(login)]).toEqual(['ada', 1, true, ['session_id']])
      expect(ada.cookie).not.toBe(before)
      const again = await ada.open()
      expect([again.name, again.says('Welcome.'), names(again)]).toEqual(['ada', false, []])
      expect(again.answer.headers.get('cache-control')).toMatch(/no-store/)
      const late = reader()
      late.cookies.set('session_id', before.split('=')[1]!)
      expect((await late.open()).name).toBeNull()
    })

    it('refuse wrong credentials', async () => {
      const eve = reader()
      const refused = await eve.click('Log in', { ...CREDENTIALS, password: 'wrong' })
      expect([refused.name, refused.says('Wrong name or password.'), eve.cookie]).toEqual([null, true, ''])
    })

    it('change nothing for a form on a page of another origin', async () => {
      const ada = reader()
      await ada.click('Log in', CREDENTIALS)
      for (const evil of [
        { Origin: 'https://evil.example', 'Sec-Fetch-Site': 'cross-site' },
        { Origin: 'https://evil.example' },
      ])
        for (const button of ['Add a coat', 'Log out']) {
          await ada.open()
          const refused = await ada.click(button, {}, evil)
          expect([refused.answer.status, names(refused)]).toEqual([crossOrigin, []])
        }
      expect(await ada.open()).toMatchObject({ name: 'ada', coats: 0 })
    })

    it('log out for good', async () => {
      const ada = reader()
      await ada.click('Log in', { ...CREDENTIALS, remember: 'on' })
      const kept = new Map(ada.cookies)
      const left = await ada.click('Log out')
      expect([left.name, ada.cookie, names(left).sort()]).toEqual([null, '', ['remember_token', 'session_id']])
      const late = reader()
      for (const [name, value] of kept) late.cookies.set(name, value)
      expect((await late.open()).name).toBeNull()
    })

    it('know a remembered user at once, in the same request, with a new token each time', async () => {
      const ada = reader()
      await ada.click('Log in', { ...CREDENTIALS, remember: 'on' })
      for (const visit of [() => ada.open(), () => ada.click('Add a coat')]) {
        await ada.open()
        const token = ada.cookies.get('remember_token')
        ada.cookies.delete('session_id') // the browser was closed
        const back = await visit()
        expect([back.name, names(back).sort()]).toEqual(['ada', ['remember_token', 'session_id']])
        expect(ada.cookies.get('remember_token')).not.toBe(token)
      }
      expect(await ada.open()).toMatchObject({ name: 'ada', coats: 1 })
    })

    it('say that the store is away, and keep the cookie', async () => {
      const ada = reader()
      await ada.click('Log in', CREDENTIALS)
      const { cookie } = ada
      await ada.open()
      try {
        running().control({ isDown: true })
        const failed = await ada.click('Add a coat')
        expect([failed.answer.status, names(failed)]).toEqual([storeDown, []])
        const page = await ada.open()
        expect([page.answer.status, page.answer.text]).toEqual([
          503,
          expect.not.stringMatching(/db\.internal|node_modules/),
        ])
      } finally {
        running().control({})
      }
      expect(ada.cookie).toBe(cookie)
      expect(await ada.open()).toMatchObject({ name: 'ada', coats: 0 })
    })

    more(reader)
  })
}
