import { describe, expect, it, vi } from 'vitest'

describe('the warning of the process', () => {
  const threw = 'its handler threw'
  const late = expect.stringMatching(/10 seconds ago.*copy `visit\.headers` into the response$/)
  const ended = expect.stringMatching(/its handler threw.*the session was ended$/)
  it.each([
    [
      [null, threw, null, threw],
      [late, ended],
    ],
    [
      [threw, null, threw, null],
      [ended, late],
    ],
  ])('comes once for each way to lose a cookie, and says what to do: %j', async (reasons, messages) => {
    // Fresh: whether a warning was given is kept by the process.
    vi.resetModules()
    const { tellUnsent } = await import('../../../src/visits/errors.ts')
    const warn = vi.spyOn(process, 'emitWarning').mockImplementation(() => {})
    const told: boolean[] = []
    const context = { emit: ({ isEnded }: { isEnded: boolean }) => told.push(isEnded) }
    try {
      for (const reason of reasons)
        tellUnsent(context as never, 'k' as never, reason, { send: 'copy `visit.headers` into the response' } as never)
      expect(told).toEqual(reasons.map(reason => reason !== null))
      const warned = { type: 'CoatcheckWarning', code: 'COATCHECK_UNSENT_COOKIE' }
      expect(warn.mock.calls).toEqual(messages.map(message => [message, warned]))
    } finally {
      warn.mockRestore()
      vi.resetModules()
    }
  })
})
