// What the verbs of a manager take and answer, each by itself.

import { SessionManager } from 'coatcheck'
import { openVisit } from 'coatcheck/custom-server'
import { MemoryStore } from 'coatcheck/stores/memory'
import { describe, expect, it } from 'vitest'
import { barrierManagers } from '../support/barrier-managers.ts'
import { faults } from '../support/barrier-store.ts'
import { onlyHost } from '../support/only-host.ts'
import { MINUTE, SECOND } from '../support/test-clock.ts'

const user = { id: 1, name: 'ada' }
const setUp = (options: object = {}) => barrierManagers(new MemoryStore(), options)

describe('what is no login is refused, and the store is not asked', () => {
  it.each([null, 'ada', 42, true])('by create: %j', async wrong => {
    const { sessions, store } = setUp()
    await expect(sessions.create(wrong as never)).rejects.toThrow(/^create: expected an object of options, got/)
    expect(store.calls).toEqual([])
  })

  it.each([null, 'ada', 42, {}, { data: {} }])('by logIn: %j', async wrong => {
    const { sessions, store } = setUp()
    const session = await sessions.create()
    store.reset()
    const refused = sessions.logIn(session, wrong as never)
    await expect(refused).rejects.toThrow('logIn: expected { user, data }')
    expect(store.calls).toEqual([])
  })

  it('nor are its options, where they are misspelt', async () => {
    const { sessions, store } = setUp()
    await expect(sessions.create({ usr: user } as never)).rejects.toThrow(/^create: .*usr/)
    const session = await sessions.create({ user })
    store.reset()
    await expect(sessions.logIn(session, { user, dta: {} } as never)).rejects.toThrow(/^logIn: .*dta/)
    await expect(sessions.regenerate(session, { grce: '1m' } as never)).rejects.toThrow(/^regenerate: .*grce/)
    await expect(sessions.regenerate(session, { grace: '3m' })).rejects.toThrow('grace')
    await expect(sessions.get(session, { tuch: false } as never)).rejects.toThrow(/^get: .*tuch/)
    await expect(sessions.get(session, { touch: 'no' } as never)).rejects.toThrow('touch: expected')
    await expect(sessions.get(session, null as never)).rejects.toThrow(/^get: /)
    expect(store.calls).toEqual([])
  })

  it('nor one for an anonymous session that only a login has', async () => {
    const { sessions } = setUp()
    for (const [name, value] of Object.entries({ verifiedAt: null, idleTimeout: '10m', absoluteTimeout: '1h' }))
      await expect(sessions.create({ [name]: value } as never)).rejects.toThrow(
        `create: "${name}" is not an option; it belongs to a login: { user, … } (there are: data)`,
      )
    await expect(sessions.create({ user: undefined } as never)).rejects.toThrow(TypeError)
  })
})

describe('get', () => {
  it('tells once more, for each caller that holds it, that a session has expired, and only then', async () => {
    const { sessions, clock, events } = setUp()
    const [theirs, visitor, ended] = [await sessions.create({ user }), await sessions.create(), await sessions.create()]
    await sessions.destroy(ended)
    events.length = 0
    clock.advance(30 * MINUTE - 1)
    expect(await sessions.get(ended)).toBeNull()
    expect(await sessions.get(theirs, { touch: false })).not.toBeNull()
    expect(events).toEqual([])
    clock.advance(1)
    for (const each of [theirs, visitor, theirs.secret, null, undefined])
      expect(await sessions.get(each as never)).toBeNull()
    expect(events).toEqual([
      { type: 'expired', key: theirs.key, userId: 1n },
      { type: 'expired', key: visitor.key, userId: null },
    ])
  })

  it('writes a visit down when the touch interval is over, unless it is told not to', async () => {
    const { sessions, store, clock } = setUp()
    const { secret } = await sessions.create({ user })
    clock.advance(3 * MINUTE - 1)
    await sessions.get(secret)
    clock.advance(1)
    await sessions.get(secret, { touch: false })
    expect(store.counts().touch).toBeUndefined()
    await sessions.get(secret, { touch: true })
    expect(store.counts().touch).toBe(1)
  })
})

describe('list', () => {
  it('shows the session first that was seen last', async () => {
    const { sessions, clock } = setUp()
    const made = []
    for (let times = 0; times < 4; times += 1) {
      made.push((await sessions.create({ user })).key)
      clock.advance(SECOND)
    }
    expect((await sessions.list(1)).map(({ key }) => key)).toEqual(made.reverse())
  })
})

describe('revoke', () => {
  it('answers whether it ended a session of this user, and ends nothing else', async () => {
    const { sessions, store, clock, events } = setUp({ rememberFor: '30d' })
    const [mine, theirs, visitor] = [
      await sessions.create({ user }),
      await sessions.create({ user: { id: 2, name: 'max' } }),
      await sessions.create(),
    ]
    clock.advance(SECOND)
    await sessions.issueRememberToken(mine)
    const [series] = await store.inner.listUser('1', 'remember', { now: mine.createdAt })
    events.length = 0
    for (const key of [theirs.key, visitor.key, series!.key]) expect(await sessions.revoke(1, key)).toBe(false)
    expect(await store.inner.listUser('1', 'remember', { now: mine.createdAt })).toEqual([series])
    store.reset()
    for (const key of ['', 'x', mine.secret, `${mine.key}x`]) expect(await sessions.revoke(1, key)).toBe(false)
    expect(store.calls).toEqual([])
    expect(events).toEqual([])
    expect(await sessions.revoke(1, mine.key)).toBe(true)
    expect(events).toEqual([{ type: 'destroyed', key: mine.key, userId: 1n, reason: 'revoked' }])
    // The device is not remembered either.
    expect(await store.inner.listUser('1', 'remember', { now: mine.createdAt })).toEqual([])
    expect(await sessions.revoke(1, mine.key)).toBe(false)
  })

  it('of one of two devices that logged in within one millisecond leaves the token of the other, under new IDs too', async () => {
    for (const isRenewed of [false, true]) {
      const { sessions } = setUp({ rememberFor: '30d' })
      const devices = []
      for (const _ of [1, 2]) {
        let session = await sessions.create({ user })
        if (isRenewed) session = (await sessions.regenerate(session, { grace: '1m' })) as typeof session
        const token = await sessions.issueRememberToken(session)
        if (isRenewed) session = (await sessions.regenerate(session)) as typeof session
        devices.push({ session, token })
      }
      const [lost, kept] = devices as [(typeof devices)[0], (typeof devices)[0]]
      expect(await sessions.revoke(1, lost.session.key)).toBe(true)
      expect(await sessions.redeemRememberToken(lost.token)).toBeNull()
      expect(await sessions.redeemRememberToken(kept.token)).not.toBeNull()
    }
  })
})

describe('destroy', () => {
  it('ends the remember-me series that the session began with, by the session and by its ID', async () => {
    for (const by of ['session', 'ID'] as const) {
      const { sessions, store } = setUp({ rememberFor: '30d' })
      const token = await sessions.issueRememberToken(await sessions.create({ user }))
      const { session, token: next } = (await sessions.redeemRememberToken(token))!
      await sessions.destroy(by === 'session' ? session : session.secret)
      expect(await sessions.redeemRememberToken(next ?? token), by).toBeNull()
      expect(await store.inner.listUser('1', 'remember', { now: session.createdAt })).toEqual([])
    }
  })

  it('of a session that a remember token began lets nothing begin with that token either', async () => {
    const { sessions, store } = setUp({ rememberFor: '30d' })
    const token = await sessions.issueRememberToken(await sessions.create({ user }))
    const { session } = (await sessions.redeemRememberToken(token))!
    // The series has ended, then the store fails.
    store.next('delete', proceed => proceed())
    store.next('delete', faults.rejects)
    await expect(sessions.destroy(session)).rejects.toMatchObject({ code: 'ERR_SESSION_STORE' })
    const late = openVisit(sessions, {
      method: 'POST',
      secure: true,
      cookie: `remember_token=${token}`,
      header: onlyHost,
    })
    await expect(late.create()).rejects.toMatchObject({ code: 'ERR_SESSION_CONFLICT' })
  })

  it('costs one call, one more by the ID alone, and nothing for what is no ID', async () => {
    const { sessions, store } = setUp()
    const [first, second] = [await sessions.create({ user }), await sessions.create({ user })]
    store.reset()
    await sessions.destroy(first)
    await sessions.destroy(second.secret)
    for (const wrong of ['', 'x', null, undefined]) await sessions.destroy(wrong as never)
    expect(store.counts()).toEqual({ read: 1, delete: 2 })
    // What began with a password has no series to look for.
    const remembering = setUp({ rememberFor: '30d' })
    const held = await remembering.sessions.create({ user })
    remembering.store.reset()
    await remembering.sessions.destroy(held)
    expect(remembering.store.counts()).toEqual({ delete: 1 })
  })
})

describe('a logout that fails', () => {
  const begun = async () => {
    const at = setUp({ rememberFor: '30d' })
    const open = (cookie: string | null) =>
      openVisit(at.sessions, { method: 'POST', secure: true, cookie, header: onlyHost })
    const login = open(null)
    return { ...at, open, login, session: await login.logIn({ user }) }
  }

  it.each(['read', 'delete'] as const)(
    'at the %s is one all the same for what comes late: nothing begins in its place, and its cookie is not sent',
    async verb => {
      const { sessions, store, open, login, session } = await begun()
      store.next(verb, faults.rejectsAfter)
      await expect(sessions.destroy(session.secret)).rejects.toMatchObject({ code: 'ERR_SESSION_STORE' })
      expect(login.headers.getSetCookie()).toEqual([])
      await sessions.destroy(session.secret)
      const late = open(`session_id=${session.secret}`)
      await expect(late.create()).rejects.toMatchObject({ code: 'ERR_SESSION_CONFLICT' })
      expect(late.headers.getSetCookie()).toEqual([])
    },
  )

  it('before it was done lets nothing begin in its place either', async () => {
    const { sessions, store, open, session } = await begun()
    store.next('read', faults.rejects)
    await expect(sessions.destroy(session.secret)).rejects.toMatchObject({ code: 'ERR_SESSION_STORE' })
    // Ended by another node meanwhile.
    await store.inner.delete(session.key, { now: session.createdAt })
    await expect(open(`session_id=${session.secret}`).create()).rejects.toMatchObject({ code: 'ERR_SESSION_CONFLICT' })
  })
})

describe('invalidateUser', () => {
  it('tells the store the minimum password version and whom to spare only where it was told itself', async () => {
    const { sessions, store } = setUp()
    const session = await sessions.create({ user })
    const asked = async (...given: unknown[]) => {
      store.reset()
      await (sessions.invalidateUser as (...given: unknown[]) => Promise<number>)(1, ...given)
      return Object.keys(store.calls.find(({ verb }) => verb === 'deleteUser')!.args[1]).sort()
    }
    expect(await asked({ except: session })).toEqual(['exceptKey', 'minPasswordVersionUntil'])
    expect(await asked({ minPasswordVersion: 0 })).toEqual(['minPasswordVersion', 'minPasswordVersionUntil'])
    for (const nothing of [undefined, {}, { except: null, minPasswordVersion: undefined }])
      expect(await asked(nothing)).toEqual(['minPasswordVersionUntil'])
  })
})

describe('isFresh', () => {
  it('is false for a session that a remember token began, until its user logs in', async () => {
    const { sessions } = setUp({ rememberFor: '30d' })
    const { session } = (await sessions.redeemRememberToken(
      await sessions.issueRememberToken(await sessions.create({ user })),
    ))!
    expect(sessions.isFresh(session, '10m')).toBe(false)
    expect(sessions.isFresh(await sessions.logIn(session, { user }), '10m')).toBe(true)
  })

  it('refuses a time that is none, whatever the session', () => {
    const { sessions } = setUp()
    expect(() => sessions.isFresh(null, 600 as never)).toThrow(/^within: /)
  })
})

describe('namespace', () => {
  it('refuses a name that is none, and quotes it', () => {
    const { sessions } = setUp()
    for (const name of ['', 'a b', 'ä', 'a/b', 'a\n', 'x'.repeat(33), 42, null])
      expect(() => sessions.namespace(name as never)).toThrow(
        /^namespace: expected 1 to 32 of the characters A-Z a-z 0-9 _ \. -, got /,
      )
    expect(sessions.namespace('Az0_.-'.repeat(5))).toBeInstanceOf(SessionManager)
    expect(sessions.namespace('x'.repeat(32))).toBeInstanceOf(SessionManager)
    expect(() => sessions.namespace('acme').namespace('inner')).toThrow(
      'namespace: a namespace has no namespaces of its own',
    )
  })
})
