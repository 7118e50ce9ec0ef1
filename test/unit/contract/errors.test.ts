import type { StoreOperation } from 'coatcheck/custom-store'
import { expect, it } from 'vitest'
import { isReading } from '../../../src/contract/errors.ts'

it('a read, a list, a walk and a count write nothing, whatever went wrong; every other method may have', () => {
  const verbs: Record<StoreOperation, boolean> = {
    create: false,
    read: true,
    update: false,
    touch: false,
    replace: false,
    delete: false,
    deleteUser: false,
    listUser: true,
    sweep: false,
    scan: true,
    count: true,
    close: false,
  }
  for (const [verb, reads] of Object.entries(verbs)) expect(isReading(verb as StoreOperation), verb).toBe(reads)
})
