// One walk for the recipes with sockets: who may connect, and when a socket ends.
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { Client } from '../support/example-service.ts'
import { until } from '../support/services/process.ts'
import { started } from '../support/started.ts'
import { folderOf, problemsOf, type RunningRecipe, startRecipe } from './recipe.ts'

const MINUTE = 60_000

/** A socket that said hello. */
export interface Connected {
  readonly hello: string
  /** What the recipe answers to a text. */
  say(text: string): Promise<string>
  /** Resolves once the recipe has closed it. */
  readonly closed: Promise<void>
  close(): void
}

/** Resolves once the recipe says hello; rejects with an error whose message says why it refuses. */
export type Connect = (url: string, headers: Record<string, string>) => Promise<Connected>

/** A client package that the recipe itself installed. */
export const packageOf = (recipe: string, name: string) => createRequire(join(folderOf(recipe), 'package.json'))(name)

/** `refusals`: what the client is told without a login, from another origin, and while the store is away. */
export function walkSockets(
  title: string,
  recipe: string,
  connect: Connect,
  refusals: Record<'anonymous' | 'foreign' | 'outage', RegExp>,
): void {
  describe(title, () => {
    let running: RunningRecipe
    const begin = (env: Record<string, string>) =>
      started(async () => {
        running = await startRecipe(recipe, { env: () => env })
        return running
      })
    const logIn = async () => {
      const client = new Client(running.url)
      expect((await client.send('POST', '/login')).status).toBe(204)
      return client
    }
    const connectAs = (client: Client, headers: Record<string, string> = {}) =>
      connect(running.url, { Cookie: client.cookie, Origin: running.url, ...headers })

    it('has the types that it says', () => {
      expect(problemsOf(recipe)).toBe('')
    }, 120_000)

    describe('as it is', () => {
      begin({})

      it('connects who is logged in, and talks to them', async () => {
        const socket = await connectAs(await logIn())
        expect([socket.hello, await socket.say('hello')]).toEqual([
          expect.stringContaining('ada'),
          expect.stringContaining('hello'),
        ])
        socket.close()
        await socket.closed
      })

      it('refuses who is not', async () => {
        await expect(connect(running.url, { Origin: running.url })).rejects.toThrow(refusals.anonymous)
        const ada = await logIn()
        const { cookie } = ada
        await ada.send('POST', '/logout')
        await expect(connect(running.url, { Origin: running.url, Cookie: cookie })).rejects.toThrow(refusals.anonymous)
      })

      it('refuses a page of another origin, whose browser sends the cookie along', async () => {
        const ada = await logIn()
        await expect(connectAs(ada, { Origin: 'https://evil.example' })).rejects.toThrow(refusals.foreign)
        const cross = { Origin: 'https://evil.example', 'Sec-Fetch-Site': 'cross-site' }
        await expect(connectAs(ada, cross)).rejects.toThrow(refusals.foreign)
      })

      it('closes the sockets of a session at its logout, at once and no others', async () => {
        const [ada, other] = [await logIn(), await logIn()]
        const [first, second, others] = [await connectAs(ada), await connectAs(ada), await connectAs(other)]
        expect((await ada.send('POST', '/logout')).status).toBe(204)
        await Promise.all([first.closed, second.closed])
        expect(await others.say('still here')).toContain('still here')
        others.close()
      })

      it('closes the sockets of all sessions of a user at a logout everywhere, before any check', async () => {
        const [ada, phone] = [await logIn(), await logIn()]
        const sockets = [await connectAs(ada), await connectAs(phone)]
        expect((await ada.send('POST', '/logout-everywhere')).status).toBe(204)
        await Promise.all(sockets.map(({ closed }) => closed))
        for (const each of [ada, phone]) await expect(connectAs(each)).rejects.toThrow(refusals.anonymous)
      }, 25_000)

      it('closes the sockets of the session that a new login replaced', async () => {
        const ada = await logIn()
        const socket = await connectAs(ada)
        expect((await ada.send('POST', '/login')).status).toBe(204)
        await socket.closed
        const next = await connectAs(ada)
        expect(next.hello).toContain('ada')
        next.close()
      })

      it('refuses while the store is away, and lets the browser keep its cookie', async () => {
        const ada = await logIn()
        running.control({ isDown: true })
        try {
          await expect(connectAs(ada)).rejects.toThrow(refusals.outage)
        } finally {
          running.control({})
        }
        const socket = await connectAs(ada)
        socket.close()
      })
    })

    describe('where it checks often', () => {
      begin({ CHECK_EVERY: '20' })

      it('neither extends a session by its checks nor by a socket that connects again, and closes once it has expired', async () => {
        const ada = await logIn()
        onTestFinished(() => running.control({}))
        const first = await connectAs(ada)
        running.control({ ahead: 20 * MINUTE })
        const second = await connectAs(ada)
        // Time for some checks. Were it too short, they would only be missing.
        await new Promise(resolve => setTimeout(resolve, 300))
        expect(await first.say('20 minutes')).toContain('20 minutes')
        running.control({ ahead: 31 * MINUTE })
        await Promise.all([first.closed, second.closed])
        await expect(connectAs(ada)).rejects.toThrow(refusals.anonymous)
      })

      it('keeps a socket through an outage of the store', async () => {
        const socket = await connectAs(await logIn())
        const before = running.output().length
        running.control({ isDown: true })
        try {
          await until('a check has failed', () => expect(running.output().slice(before)).toContain('db.internal'))
          expect(await socket.say('still here')).toContain('still here')
        } finally {
          running.control({})
        }
        expect(await socket.say('and now')).toContain('and now')
        socket.close()
      })
    })
  })
}
