import { expect, it } from 'vitest'
import { read } from '../../support/pages.ts'
import { TARGETS } from './targets.ts'

it('the page of proofs lists every target', () => {
  const section = read('docs/proof.md')
    .split(/^## /m)
    .find(text => text.startsWith('Fuzzing\n'))!
  const listed = section.split('\n').filter(line => line.startsWith('- '))
  const named = listed.flatMap(line => [...line.matchAll(/`([\w-]+)`/g)].map(match => match[1]!))
  expect(named.filter(name => /^[a-z-]+$/.test(name)).sort()).toEqual(TARGETS.map(({ name }) => name).sort())
})
