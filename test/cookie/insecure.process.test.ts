// An application may answer with the code alone: the log says what to do.
import { SessionManager } from 'coatcheck'
import { fetchVisits } from 'coatcheck/fetch'
import { MemoryStore } from 'coatcheck/stores/memory'
import { expect, it, vi } from 'vitest'

it('a login that is refused for lack of HTTPS is a warning of the process, once, with the option to set', async () => {
  const warn = vi.spyOn(process, 'emitWarning').mockImplementation(() => {})
  const visits = fetchVisits(new SessionManager({ store: new MemoryStore(), sweepInterval: false }))
  for (let times = 0; times < 2; times += 1) {
    const visit = visits.of(new Request('http://app.example.com/login', { method: 'POST' }))
    await expect(visit.logIn({ user: { id: 1, name: 'ada' } })).rejects.toMatchObject({ code: 'ERR_SESSION_INSECURE' })
  }
  expect(warn.mock.calls).toEqual([
    [
      expect.stringMatching(
        /^a session was refused: this request did not come over HTTPS; behind a proxy .* set `isSecure` of fetchVisits/,
      ),
      { type: 'CoatcheckWarning', code: 'COATCHECK_INSECURE' },
    ],
  ])
  warn.mockRestore()
})
