import { expect, it, vi } from 'vitest'

it('a process is warned once of cookies that no response carried, and is told each one', async () => {
  // Fresh: whether a warning was given is kept by the process.
  vi.resetModules()
  const { reportUnsent } = await import('../../../src/visits/errors.ts')
  const warn = vi.spyOn(process, 'emitWarning').mockImplementation(() => {})
  const emit = vi.fn()
  try {
    for (const key of ['k', 'l'])
      reportUnsent({ emit }, key as never, { send: 'call `visit.finish()` after the last method' } as never)
    expect(emit.mock.calls).toEqual([[{ type: 'unsent-cookie', key: 'k' }], [{ type: 'unsent-cookie', key: 'l' }]])
    const warned = { type: 'CoatcheckWarning', code: 'COATCHECK_UNSENT_COOKIE' }
    const message = expect.stringMatching(/10 seconds ago.*call `visit\.finish\(\)` after the last method$/)
    expect(warn.mock.calls).toEqual([[message, warned]])
  } finally {
    warn.mockRestore()
    vi.resetModules()
  }
})
