import { expect, it } from 'vitest'
import { table } from '../../support/pages.ts'
import { REQUESTS } from './targets-requests.ts'
import { STORED } from './targets-stored.ts'

it('the page of proofs lists every target, with what it reads', () => {
  const rows = table('docs/proof.md', 'Fuzzing').map(([name, reads]) => [name!.replaceAll('`', ''), reads])
  expect(rows).toEqual([...REQUESTS, ...STORED].map(({ name, reads }) => [name, reads]))
})
