import { expect, it } from 'vitest'
import { isReading } from '../../../src/contract/errors.ts'

it('a read, a list, a walk and a count write nothing, whatever went wrong; every other method may have', () => {
  const others = ['create', 'update', 'touch', 'replace', 'delete', 'deleteUser', 'sweep', 'close'] as const
  for (const verb of ['read', 'listUser', 'scan', 'count'] as const) expect(isReading(verb), verb).toBe(true)
  for (const verb of others) expect(isReading(verb), verb).toBe(false)
})
