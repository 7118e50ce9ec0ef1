import { createHmac } from 'node:crypto'
import { expect, it } from 'vitest'
import { csrfTokenOf, withCsrfToken } from '../../../src/session/csrf.ts'
import { newId } from '../../../src/session/id.ts'

const keyed = (id: string, text: string) => createHmac('sha256', id).update(text).digest()

// While a new version is deployed, forms that one process rendered come back to another.
it('versions that run side by side agree on the CSRF token of a session', () => {
  const [id, next] = [newId(), newId()]
  const token = keyed(id, 'csrf')
  expect(csrfTokenOf(id, '{"a":1}')).toBe(token.toString('base64url'))

  const stored = withCsrfToken('{"a":1}', id, next)
  const mask = keyed(next, 'csrf\0mask')
  const masked = Buffer.from(token.map((byte, at) => byte ^ mask[at]!)).toString('base64url')
  expect(stored).toContain(masked)
  expect(csrfTokenOf(next, stored)).toBe(token.toString('base64url'))
})
