// examples/back-channel-logout.mjs, by tokens of a real OpenID provider.
import { SessionManager } from 'coatcheck'
import { nodeVisits } from 'coatcheck/node'
import { MemoryStore } from 'coatcheck/stores/memory'
import express from 'express'
import { decodeJwt, generateKeyPair, SignJWT, UnsecuredJWT } from 'jose'
import { afterEach, expect, it, vi } from 'vitest'
import { backChannelLogout, oidc } from '../../examples/back-channel-logout.mjs'
import { Client } from '../support/example-service.ts'
import { listening } from '../support/listening.ts'
import { started } from '../support/started.ts'
import { startOidcProvider } from './provider.ts'

const EVENT = 'http://schemas.openid.net/event/backchannel-logout'
const USERS = new Map([
  ['ada', 42n],
  ['bob', 7n],
])

const provider = started(startOidcProvider)
const open: (() => unknown)[] = []
afterEach(() => {
  vi.useRealTimers()
  for (const close of open.splice(0)) close()
})

/** Nodes of a service over one store. */
function service({ audience = 'shop', jwks = provider().jwks, store = new MemoryStore() } = {}) {
  const startNode = async () => {
    const sessions = new SessionManager({
      store,
      rememberFor: '30d',
      initial: () => ({ ...oidc(), cart: [] as string[] }),
    })
    const visits = nodeVisits(sessions, { cookie: { secure: false } })
    const userIdOf = async (subject: string) => USERS.get(subject) ?? null
    const logouts = backChannelLogout(sessions, { store, issuer: provider().issuer, audience, jwks, userIdOf })
    const app = express().set('env', 'test')
    app.post('/back-channel-logout', express.urlencoded({ limit: '32kb' }), async (req, res) => {
      res.set('Cache-Control', 'no-store')
      await logouts.receive(req.body?.logout_token)
      res.end()
    })
    app.post('/login', express.json(), async (req, res) => {
      const { claims, ...how } = req.body
      const user = { id: USERS.get(claims.sub)!, name: claims.sub }
      await logouts.logIn(visits.of(req, res), { ...how, user }, claims)
      res.end()
    })
    app.post('/password', async (req, res) => {
      await visits.of(req, res).logIn({ user: { id: 42n, name: 'ada' } })
      res.end()
    })
    app.get('/', async (req, res) => {
      const session = await visits.of(req, res).get()
      res.json(session?.user?.name ?? null)
    })
    const { url, close } = await listening(app)
    open.push(close)
    const post = (token: string, headers = {}) =>
      fetch(`${url}/back-channel-logout`, {
        method: 'POST',
        headers,
        body: new URLSearchParams({ logout_token: token }),
      })
    return { url, sessions, receiver: `${url}/back-channel-logout`, post, logouts }
  }
  return { store, startNode }
}

class Browser extends Client {
  /** The name of whoever is logged in, or `null`. */
  async who() {
    return (await this.send('GET', '/')).body
  }
  /** By an ID token of the provider. */
  async logIn(sub: string, sid: string, how: object = {}) {
    const claims = decodeJwt(await provider().idToken(sub, sid))
    return (await this.send('POST', '/login', { claims, ...how })).status
  }
}

let names = 0
const logoutToken = (claims: object = {}) => {
  const iat = Math.floor(Date.now() / 1000)
  const usual = {
    iss: provider().issuer,
    aud: 'shop',
    iat,
    exp: iat + 120,
    jti: `jti ${++names}`,
    sub: 'ada',
    sid: 'laptop',
  }
  return { ...usual, events: { [EVENT]: {} }, ...claims }
}

async function logIn(node: { url: string }, sub: string, sid: string, how: object = {}) {
  const browser = new Browser(node.url)
  expect(await browser.logIn(sub, sid, how)).toBe(200)
  return browser
}

it('ends the session that the provider names with its remember token, and no other', async () => {
  const node = await service().startNode()
  provider().at.receiver = node.receiver
  const laptop = await logIn(node, 'ada', 'laptop', { remember: true })
  const others = await Promise.all([
    logIn(node, 'ada', 'phone', { remember: true }),
    logIn(node, 'bob', 'laptop of bob'),
  ])
  const byPassword = new Browser(node.url)
  await byPassword.send('POST', '/password')
  const elsewhere = { issuer: 'https://other.example', sid: 'laptop' }
  const { secret } = await node.sessions.create({ user: { id: 42n, name: 'ada' }, data: { oidc: elsewhere } })
  const token = laptop.cookies.get('remember_token')!
  await provider().logOut('ada', 'laptop')
  expect(await laptop.who()).toBeNull()
  const again = new Browser(node.url)
  again.cookies.set('remember_token', token)
  expect(await again.who()).toBeNull()
  expect(await Promise.all([...others, byPassword].map(each => each.who()))).toEqual(['ada', 'bob', 'ada'])
  expect(await node.sessions.get(secret), 'a session of another provider').not.toBeNull()
})

it('ends all sessions and remember tokens of a user whom the provider names alone', async () => {
  const node = await service({ audience: 'by-subject' }).startNode()
  provider().at.receiver = node.receiver
  const browsers = await Promise.all(['laptop', 'phone'].map(sid => logIn(node, 'ada', sid, { remember: true })))
  const bob = await logIn(node, 'bob', 'laptop')
  await provider().logOut('ada', '', 'by-subject')
  expect(await Promise.all([...browsers, bob].map(each => each.who()))).toEqual([null, null, 'bob'])
  for (const { cookies } of browsers) cookies.delete('session_id')
  expect(await Promise.all(browsers.map(each => each.who()))).toEqual([null, null])
  // The user is not locked out: who logs in after that is in.
  vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + 2000 })
  expect(await browsers[0]!.logIn('ada', 'laptop 2')).toBe(200)
})

it.each(['shop', 'by-subject'])('0 of 100 logins under way outlive a logout for %s', async audience => {
  const store = new MemoryStore()
  // Each call of the store takes its time, another one each try; in every second one the session begins after the logout.
  let logout: Promise<unknown> | null = null
  const slow = new Proxy(store, {
    get(target, name) {
      const value = Reflect.get(target, name)
      if (typeof value !== 'function') return value
      return async (...args: unknown[]) => {
        if (name === 'create' && (args[0] as { userId: string }).userId === '42') await logout
        for (let turns = Math.random() * 8; turns > 0; turns -= 1) await new Promise(setImmediate)
        return value.apply(target, args)
      }
    },
  })
  const node = await service({ audience, store: slow }).startNode()
  provider().at.receiver = node.receiver
  const statuses = new Set<number>()
  for (let at = 0; at < 100; at += 1) {
    const [sid, browser] = [`race ${at}`, new Browser(node.url)]
    const claims = decodeJwt(await provider().idToken('ada', sid))
    const ended = provider().logOut('ada', sid, audience)
    logout = at % 2 === 0 ? ended : null
    const [login] = await Promise.all([browser.send('POST', '/login', { claims, remember: at % 4 < 2 }), ended])
    statuses.add(login.status)
    expect(await browser.who()).toBeNull()
  }
  expect([...statuses].filter(status => status !== 200 && status !== 401)).toEqual([])
})

it('refuses what is no logout token of this provider for this client with 400, and ends nothing', async () => {
  const node = await service().startNode()
  const laptop = await logIn(node, 'ada', 'laptop')
  const { privateKey } = await generateKeyPair('RS256')
  const old = Math.floor(Date.now() / 1000) - 600
  const { events: _, ...noEvents } = logoutToken()
  const { jti: __, ...noJti } = logoutToken()
  const { sub: ___, ...noSub } = logoutToken()
  const secret = new TextEncoder().encode('a secret of more than thirty-two characters')
  const wrong = {
    forged: await new SignJWT(logoutToken()).setProtectedHeader({ alg: 'RS256', kid: 'one' }).sign(privateKey),
    'another key': await new SignJWT(logoutToken()).setProtectedHeader({ alg: 'RS256', kid: 'two' }).sign(privateKey),
    'alg none': new UnsecuredJWT(logoutToken()).encode(),
    'a secret': await new SignJWT(logoutToken()).setProtectedHeader({ alg: 'HS256', kid: 'one' }).sign(secret),
    audience: await provider().sign(logoutToken({ aud: 'another shop' })),
    issuer: await provider().sign(logoutToken({ iss: 'https://other.example' })),
    old: await provider().sign(logoutToken({ iat: old, exp: old + 1000 })),
    expired: await provider().sign(logoutToken({ exp: old })),
    'no events': await provider().sign(noEvents),
    'other events': await provider().sign(logoutToken({ events: { other: {} } })),
    'no object': await provider().sign(logoutToken({ events: null })),
    'no object in it': await provider().sign(logoutToken({ events: { [EVENT]: null } })),
    'no jti': await provider().sign(noJti),
    'no sub': await provider().sign(noSub),
    nonce: await provider().sign(logoutToken({ nonce: 'n' })),
    'an ID token': await provider().idToken('ada', 'laptop'),
    'no JWT': 'nonsense',
  }
  for (const [what, token] of Object.entries(wrong)) {
    const response = await node.post(token)
    expect([what, response.status, response.headers.get('cache-control')]).toEqual([what, 400, 'no-store'])
  }
  const good = await provider().sign(logoutToken())
  expect((await node.post(good, { 'Content-Type': 'text/plain' })).status).toBe(400)
  expect((await node.post('x'.repeat(100_000))).status).toBe(413)
  const twice = new URLSearchParams({ logout_token: good })
  twice.append('logout_token', good)
  expect((await fetch(node.receiver, { method: 'POST', body: twice })).status).toBe(400)
  expect(await laptop.who()).toBe('ada')
  expect((await node.post(good)).status).toBe(200)
  expect(await laptop.who()).toBeNull()
})

it('refuses a token that comes again, at another node too, with 400', async () => {
  const { startNode } = service()
  const [one, other] = [await startNode(), await startNode()]
  provider().at.receiver = one.receiver
  await provider().logOut('ada', 'laptop')
  const { token, status } = provider().sent.at(-1)!
  expect(status).toBe(200)
  expect([(await one.post(token)).status, (await other.post(token)).status]).toEqual([400, 400])
})

it('answers 200 for a user, or a session, that is not here', async () => {
  const node = await service().startNode()
  provider().at.receiver = node.receiver
  await provider().logOut('nobody', 'laptop')
  await provider().logOut('ada', 'a session that is over')
  expect(
    provider()
      .sent.slice(-2)
      .map(({ status }) => status),
  ).toEqual([200, 200])
})

it('asks for the same token again while the store or the provider’s keys are away, and takes it then', async () => {
  const store = new MemoryStore()
  const node = await service({ store }).startNode()
  const laptop = await logIn(node, 'ada', 'laptop')
  const token = await provider().sign(logoutToken())
  const list = vi.spyOn(store, 'listUser').mockRejectedValue(new Error('away'))
  expect((await node.post(token)).status).toBe(503)
  list.mockRestore()
  const deleted = vi.spyOn(store, 'delete').mockRejectedValue(new Error('away'))
  expect((await node.post(token)).status).toBe(503)
  deleted.mockRestore()
  const keyless = await service({ store, jwks: 'http://127.0.0.1:1/jwks' }).startNode()
  expect((await keyless.post(token)).status).toBe(503)
  const broken = await service({ store, jwks: `${provider().issuer}/no-such-page` }).startNode()
  expect((await broken.post(token)).status).toBe(503)
  expect(await laptop.who()).toBe('ada')
  expect((await node.post(token)).status).toBe(200)
  expect(await laptop.who()).toBeNull()
})
