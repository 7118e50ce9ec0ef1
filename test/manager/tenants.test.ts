// Tenants: each has users and keys of its own, and shares the memory of the process.
import { SessionManager } from 'coatcheck'
import { fetchVisits } from 'coatcheck/fetch'
import { MemoryStore } from 'coatcheck/stores/memory'
import { describe, expect, it } from 'vitest'
import { open, schemaOf, setUp, user } from '../support/manager-kit.ts'

it('the name of a tenant is short and plain, and a tenant has no tenants of its own', () => {
  const { sessions } = setUp()
  for (const name of ['', 'a b', 'a/b', 'ä', 'a\n', 'x'.repeat(33), 7, null])
    expect(() => sessions.namespace(name as never)).toThrow(
      /^namespace: expected 1 to 32 of the characters A-Z a-z 0-9 _ \. -, got /,
    )
  for (const name of ['a', 'x'.repeat(32), 'Shop_1.de-AT', '__proto__'])
    expect(sessions.namespace(name)).toBeInstanceOf(SessionManager)
  expect(() => sessions.namespace('a').namespace('b')).toThrow('namespace: a namespace has no namespaces of its own')
})

it('a tenant of a subclass has its methods and its fields', async () => {
  class Audited extends SessionManager {
    readonly log: string[] = []
    override async destroy(...args: Parameters<SessionManager['destroy']>): Promise<void> {
      this.log.push('destroy')
      return super.destroy(...args)
    }
  }
  const sessions = new Audited({ store: new MemoryStore(), sweepInterval: false })
  const tenant: Audited = sessions.namespace('acme')
  expect(tenant).toBeInstanceOf(Audited)
  const session = await tenant.create({ user })
  await tenant.destroy(session)
  expect(sessions.log).toEqual(['destroy'])
  expect(await tenant.get(session.secret)).toBeNull()
  expect(() => tenant.namespace('other')).toThrow('no namespaces of its own')
})

it('a login at a second tenant of one host has a cookie of its own, and leaves the first one’s to its logout', async () => {
  const { sessions } = setUp()
  const visitsOf = (name: string) => fetchVisits(sessions.namespace(name), { cookie: { name: `session_${name}` } })
  const [acme, globex] = [visitsOf('acme'), visitsOf('globex')]
  const jar = new Map<string, string>()
  const ask = async (visits: typeof acme, verb: 'logIn' | 'logOut') => {
    const cookie = [...jar].map(pair => pair.join('=')).join('; ')
    const request = new Request('https://shop.example/', { method: 'POST', headers: { cookie } })
    const { headers } = await visits.handle(request, async visit => {
      await (verb === 'logIn' ? visit.logIn({ user }) : visit.logOut())
      return new Response()
    })
    for (const line of headers.getSetCookie()) {
      const [, name, value] = /^([^=]+)=([^;]*)/.exec(line)!
      if (value) jar.set(name!, value)
      else jar.delete(name!)
    }
    const lists = ['acme', 'globex'].map(async name => (await sessions.namespace(name).list(1)).length)
    return [[...jar.keys()], await Promise.all(lists)]
  }
  expect(await ask(acme, 'logIn')).toEqual([['session_acme'], [1, 0]])
  expect(await ask(globex, 'logIn')).toEqual([
    ['session_acme', 'session_globex'],
    [1, 1],
  ])
  expect(await ask(globex, 'logOut')).toEqual([['session_acme'], [1, 0]])
  expect(await ask(acme, 'logOut')).toEqual([[], [0, 0]])
})

describe('a tenant that is asked for at each request', () => {
  it('is the same one, whose options were checked once', () => {
    let started = 0
    const initial = () => {
      started += 1
      return {}
    }
    const accepts = schemaOf(value => ({ value }))
    const { sessions } = setUp({ initial, schema: accepts })
    expect(started).toBe(1)
    expect(sessions.namespace('acme')).toBe(sessions.namespace('acme'))
    expect(sessions.namespace('acme')).not.toBe(sessions.namespace('Acme'))
    expect(started).toBe(1)
  })

  it('is let go where a client makes up names, and has forgotten nothing when it is asked for again', async () => {
    const { sessions } = setUp()
    const acme = sessions.namespace('acme')
    const slow = open(acme)
    const session = await slow.logIn({ user })
    for (let made = 0; made < 5000; made += 1) sessions.namespace(`made-up-${made}`)
    const again = sessions.namespace('acme')
    expect(again).not.toBe(acme)
    await again.destroy(session)
    expect(slow.headers.getSetCookie()).toEqual([])
  })
})

describe('what one tenant ends, touches and writes', () => {
  it('concerns no session without a tenant, whatever the name of the tenant is', async () => {
    const { sessions } = setUp()
    const visitor = await sessions.create()
    for (const name of ['null', 'undefined', '0', 'namespace', '-']) {
      const tenant = sessions.namespace(name)
      expect(await tenant.get(visitor.secret)).toBeNull()
      await tenant.destroy(visitor.secret)
    }
    expect((await sessions.get(visitor.secret))?.key).toBe(visitor.key)
  })
})
