// Some clients put the value of a cookie in quotes (RFC 6265, section 4.1.1), such as Java's HttpClient with its CookieManager.
import { SessionManager } from 'coatcheck'
import { openVisit, SessionCookie } from 'coatcheck/custom-server'
import { MemoryStore } from 'coatcheck/stores/memory'
import { describe, expect, it } from 'vitest'
import { onlyHost } from '../support/only-host.ts'

const cookie = new SessionCookie()

describe('the value of a cookie in quotes', () => {
  it.each([
    ['"abc"', 'abc'],
    [' \t"abc" ', 'abc'],
    ['""', ''],
    ['"a"b"', 'a"b'],
    ['""abc""', '"abc"'],
    ['"', '"'],
    ['"abc', '"abc'],
    ['abc"', 'abc"'],
    ["'abc'", "'abc'"],
  ])('%s is read as %s', (value, id) => {
    for (const header of [`a=1; session_id=${value}; b="2"`, [`a=1; session_id=${value}`]])
      expect(cookie.candidates(header)).toEqual([id])
  })

  it('is the same as without them, and another one beside it another', () => {
    expect(cookie.candidates('session_id="abc"; session_id=abc')).toEqual(['abc'])
    expect(cookie.candidates('session_id="abc"; session_id="abd"')).toEqual(['abc', 'abd'])
    expect(cookie.candidates('session_id="abc"; session_id=abd')).toEqual(['abc', 'abd'])
  })

  it('finds the session, begins one by its remember token, and ends both', async () => {
    const sessions = new SessionManager({ store: new MemoryStore(), sweepInterval: false, rememberFor: '30d' })
    const visit = (header: string | null) =>
      openVisit(sessions, { method: 'POST', secure: true, cookie: header, header: onlyHost })
    const login = visit(null)
    await login.logIn({ user: { id: 42n, name: 'ada' }, remember: true })
    const [session, token] = login.cookies.map(({ name, value }) => `${name}="${value}"`)
    expect((await visit(session!).get())?.user?.name).toBe('ada')
    expect((await visit(token!).get())?.remembered).toBe(true)
    await visit(`${session}; ${token}`).logOut()
    for (const header of [session!, token!]) expect(await visit(header).get()).toBeNull()
  })
})
