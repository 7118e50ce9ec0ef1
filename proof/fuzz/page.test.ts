import { expect, it } from 'vitest'
import { table } from '../../test/support/pages.ts'
import { TARGETS } from './targets.ts'

it('the page of proofs lists every target, with what it reads', () => {
  const rows = table('docs/proof.md', 'Fuzzing').map(([name, reads]) => [name!.replaceAll('`', ''), reads])
  expect(rows).toEqual(TARGETS.map(({ name, reads }) => [name, reads]))
})
