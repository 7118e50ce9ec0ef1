// Start, alone and with all its guides, attacked by a stranger, and by somebody who has an account, or a password and no second factor.
import type { Pool } from 'pg'
import { expect, it } from 'vitest'
import { Client } from '../support/example-service.ts'
import { guidesInStart } from '../support/page-code.ts'
import { PAGES } from '../support/pages.ts'
import { describeEngine } from '../support/services/engines.ts'
import { sharedPostgres } from '../support/services/postgres.ts'
import { started } from '../support/started.ts'
import { attack, routesOf, run, useAttacks } from './attacks.ts'

const GUIDES = PAGES.filter(page => page.startsWith('docs/guide/'))

const PASSWORD = 'correct horse'
const FORM = { 'Content-Type': 'application/x-www-form-urlencoded' }

useAttacks()

describeEngine('postgresql', 'an application of Start', () => {
  const server = started(sharedPostgres)

  it.each<[string, string[]]>([
    ['alone', []],
    ['with all guides', GUIDES],
  ])(
    '%s answers a stranger without harm',
    async (name, guides) => {
      const code = guidesInStart(guides)
      await attack({ name, code, routes: routesOf(code) }, { DATABASE_URL: server().url() })
      const tables = 'users, identities, coatcheck_sessions, coatcheck_sessions_users'
      await server().pool().query(`DROP TABLE IF EXISTS ${tables} CASCADE`)
    },
    240_000,
  )
})

describeEngine('postgresql', 'an application of Start and all guides', () => {
  const server = started(sharedPostgres)
  let url: string
  let pool: Pool
  started(async () => {
    pool = server().pool()
    const running = await run('an application', guidesInStart(GUIDES), { DATABASE_URL: server().url() })
    url = running.url
    return { stop: () => running.stop('SIGKILL') }
  })

  const copyOf = ({ cookies }: Client) => {
    const copy = new Client(url)
    for (const [name, value] of cookies) copy.cookies.set(name, value)
    return copy
  }
  const userOf = async (client: Client) => {
    const { status, body } = await client.send('GET', '/account')
    return status === 200 ? body.name : null
  }
  const signUp = async (name: string, password = PASSWORD) => {
    const client = new Client(url)
    expect((await client.send('POST', '/signup', { name, password })).status).toBe(201)
    return client
  }
  /** With the password, and no code yet. */
  const halfWay = async (name: string) => {
    const client = new Client(url)
    await client.send('POST', '/login', { name, password: PASSWORD, remember: true })
    return client
  }
  const enter = (client: Client, code: unknown = '123456') => client.send('POST', '/login/code', { code })

  it('logs nobody in by the password alone, at any of its routes', async () => {
    await signUp('ada')
    const half = await halfWay('ada')
    for (const [method, path, body] of [
      ['GET', '/account', undefined],
      ['POST', '/signin', { name: 'ada', password: PASSWORD }],
      ['POST', '/account/confirm', { password: PASSWORD }],
      ['POST', '/account/password', { oldPassword: PASSWORD, newPassword: PASSWORD }],
      ['GET', '/oauth/callback?state=&code=1', undefined],
      ['GET', `/sso/finish?ticket=${half.cookies.get('session_id')}`, undefined],
    ] as const) {
      const copy = copyOf(half)
      await copy.send(method, path, body)
      expect([path, await userOf(copy), copy.cookies.has('remember_token')]).toEqual([path, null, false])
    }
    const form = new Client(url)
    await form.send('POST', '/signin', `name=ada&password=${PASSWORD.replace(' ', '+')}`, FORM)
    expect(await userOf(form)).toBeNull()
    await enter(form)
    expect(await userOf(form)).toBe('ada')
  })

  it('looks at five codes of a user, however many browsers send them', async () => {
    await signUp('eva')
    const browsers = await Promise.all(Array.from({ length: 5 }, () => halfWay('eva')))
    const sent = browsers.flatMap(browser => [1, 2, 3, 4].map(() => enter(copyOf(browser), '000000')))
    const statuses = (await Promise.all(sent)).map(({ status }) => status)
    expect(statuses.filter(status => status === 401)).toHaveLength(5)
    const late = await halfWay('eva')
    expect([(await enter(late)).status, await userOf(late)]).toEqual([429, null])
  })

  it('lets a logout everywhere and an administrator end a login that waits for its code', async () => {
    await signUp('ida')
    for (const change of ['password_version = password_version + 1', 'disabled = true']) {
      const half = await halfWay('ida')
      await pool.query(`UPDATE users SET ${change} WHERE name = 'ida'`)
      expect([(await enter(half)).status, await userOf(half)]).toEqual([401, null])
    }
  })

  it('gives nobody the account of a user whose name they have taken', async () => {
    const mia = await signUp('mia')
    await pool.query("UPDATE users SET name = 'maria' WHERE name = 'mia'")
    const thief = await signUp('mia', 'another horse')
    const next = 'stolen horse'
    for (const [client, oldPassword] of [
      [mia, 'another horse'],
      [thief, PASSWORD],
    ] as const) {
      const changed = await copyOf(client).send('POST', '/account/password', { oldPassword, newPassword: next })
      const confirmed = await copyOf(client).send('POST', '/account/confirm', { password: oldPassword })
      expect([changed.status, confirmed.status]).toEqual([401, 401])
    }
    const maria = await halfWay('maria')
    await enter(maria)
    expect(await userOf(maria)).toBe('maria')
  })

  it('lets nobody log another user out', async () => {
    const [lea, max] = [await signUp('lea'), await signUp('max')]
    const [device] = (await lea.send('GET', '/account/devices')).body
    expect((await copyOf(max).send('DELETE', `/account/devices/${device.key}`)).status).toBe(404)
    const evil = { Origin: 'https://evil.example' }
    for (const path of ['/logout', '/logout/everywhere']) {
      expect((await copyOf(lea).send('POST', path, undefined, evil)).status).toBe(403)
      await copyOf(lea).send('GET', path)
      await new Client(url).send('POST', path)
      await copyOf(max).send('POST', path)
      expect([path, await userOf(lea)]).toEqual([path, 'lea'])
    }
  })

  it('leads to no other site after a login', async () => {
    for (const next of [
      '//evil.example',
      '/\\evil.example',
      'https://evil.example',
      '/\t/evil.example',
      'javascript:a',
    ]) {
      const query = new URLSearchParams({ next })
      const answer = await new Client(url).send('POST', `/signin?${query}`, `name=ada&password=${PASSWORD}`, FORM)
      expect([next, answer.status, answer.headers.get('location')]).toEqual([next, 303, '/'])
    }
  })
})
