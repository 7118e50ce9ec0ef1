// What a record keeps of its device, as text and as rules.
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { seal, unseal } from '../../src/data/meta.ts'
import {
  answers,
  type Binding,
  bindingIn,
  CHALLENGE_LIFE,
  deviceIn,
  format,
  isFull,
  newBinding,
  offerChallenge,
  proved,
  refreshChallenge,
  valueIn,
  withBinding,
} from '../../src/device-bound/binding.ts'
import { hashOf } from '../../src/session/id.ts'

const NOW = 1_800_000_000_000
const LIFE = 300_000
const ES = { algorithm: 'ES256', key: 'k'.repeat(86) } as const
const SALT = 's'.repeat(16)
const kept = (device: string, text = '{"n":1}') => ({ data: seal({ device }, text) })
const at = (now: number, device: Binding['device'] = ES) => newBinding(device, now, LIFE).binding

/** A binding after so many proofs, each `step` after the one before. */
function after(proofs: number, step: number, start = at(NOW)) {
  let binding = start
  const values: string[] = []
  for (let each = 1; each <= proofs; each += 1) {
    const next = proved(binding, NOW + each * step, LIFE)
    binding = next.binding
    values.unshift(next.value)
  }
  return { binding, values }
}

describe('the text of a binding', () => {
  const text = (pattern: RegExp) => fc.stringMatching(pattern)
  const salt = text(/^[A-Za-z0-9_-]{16}$/)
  const instant = fc.integer({ min: 0, max: 8_640_000_000_000_000 })
  const device = fc.oneof(
    text(/^[A-Za-z0-9_-]{86}$/).map(key => ({ algorithm: 'ES256' as const, key })),
    text(/^[A-Za-z0-9_-]{342}$/).map(key => ({ algorithm: 'RS256' as const, key })),
    text(/^[A-Za-z0-9_-]{683}$/).map(key => ({ algorithm: 'RS256' as const, key })),
  )
  const binding: fc.Arbitrary<Binding> = fc.record({
    id: salt,
    device,
    boundAt: instant,
    provedAt: instant,
    challenge: fc.record({ salt, end: instant }),
    spent: fc.oneof(fc.constant(''), salt),
    values: fc.array(fc.record({ hash: text(/^[A-Za-z0-9_-]{43}$/), end: instant }), { maxLength: 8 }),
  })

  it('says all of it, and stands beside the data and what else the session keeps', () => {
    fc.assert(
      fc.property(binding, fc.constantFrom('{}', '{"n":1}', '@odd'), (whole, text) => {
        const before = { data: seal({ verifiedAt: 5, device: `o${SALT}` }, text) }
        const data = withBinding(before, whole)
        expect(bindingIn({ data })).toEqual(whole)
        expect(unseal(data)).toMatchObject({ text, meta: { verifiedAt: 5 } })
      }),
      { numRuns: 100 },
    )
  })

  it('is neither an offer nor a binding where there is none', () => {
    expect([deviceIn({ data: '{}' }), bindingIn({ data: '{}' })]).toEqual([null, null])
    expect([deviceIn(kept(`o${SALT}`)), bindingIn(kept(`o${SALT}`))]).toEqual([{ offer: SALT }, null])
  })

  const parts = () => format({ ...at(NOW), spent: SALT }).split('.')
  const changed = (place: number, part: string | ((before: string) => string)) => () => {
    const all = parts()
    return all.with(place, typeof part === 'string' ? part : part(all[place]!)).join('.')
  }
  it.each<[string, () => string]>([
    ['nothing', () => ''],
    ['an offer that is too short', () => `o${SALT.slice(1)}`],
    ['an offer that is too long', () => `o${SALT}s`],
    ['an offer behind something', () => `xo${SALT}`],
    ['another mark', changed(0, 'c')],
    ['no name', changed(1, '')],
    ['a name that is too long', changed(1, id => `${id}x`)],
    ['another kind of key', changed(2, 'X')],
    ['the key of another kind', changed(2, 'R')],
    ['a key that is too short', changed(3, 'k'.repeat(85))],
    ['a key that is too long', changed(3, 'k'.repeat(87))],
    ['an RSA key that is too short', () => parts().with(2, 'R').with(3, 'k'.repeat(341)).join('.')],
    ['an RSA key that is too long', () => parts().with(2, 'R').with(3, 'k'.repeat(684)).join('.')],
    ['no begin', changed(4, '')],
    ['a begin in capitals', changed(4, 'ABC')],
    ['no last proof', changed(5, '')],
    ['a last proof of twelve digits', changed(5, '1'.repeat(12))],
    ['no challenge', changed(6, '')],
    ['a challenge that is too short', changed(6, SALT.slice(1))],
    ['no end of the challenge', changed(7, '')],
    ['a spent challenge that is too long', changed(8, `${SALT}s`)],
    ['a hash that is too short', changed(9, hash => hash.slice(1))],
    ['a hash that is too long', changed(9, hash => `${hash}x`)],
    ['a value without an end', () => parts().slice(0, -1).join('.')],
    ['an end of a value that is none', changed(10, '-1')],
    ['a second value without an end', () => [...parts(), 'h'.repeat(43)].join('.')],
    ['a second hash that is none', () => [...parts(), 'x', '1'].join('.')],
    ['the first parts alone', () => parts().slice(0, 7).join('.')],
  ])('is broken, and no session without a binding, with %s', (_, device) => {
    expect(bindingIn(kept(parts().join('.')))).not.toBeNull()
    expect([deviceIn(kept(device())), bindingIn(kept(device()))]).toEqual(['broken', null])
  })

  it('may have no value', () => {
    expect(bindingIn(kept(parts().slice(0, 9).join('.')))).toMatchObject({ values: [], spent: SALT })
  })
})

describe('a binding', () => {
  it('begins with one value, of which only the browser has the text, and the first challenge', () => {
    const { binding, value } = newBinding(ES, NOW, LIFE)
    expect(binding).toEqual({
      id: expect.stringMatching(/^[\w-]{16}$/),
      device: ES,
      boundAt: NOW,
      provedAt: NOW,
      spent: '',
      challenge: { salt: expect.stringMatching(/^[\w-]{16}$/), end: NOW + LIFE + CHALLENGE_LIFE },
      values: [{ hash: hashOf(value), end: NOW + LIFE }],
    })
    expect(CHALLENGE_LIFE).toBe(300_000)
    expect(format(binding)).not.toContain(value)
  })

  it('has a new value and a new challenge after a proof, and keeps the rest', () => {
    const first = at(NOW)
    const { binding, value } = proved(first, NOW + 1000, LIFE)
    expect(binding).toMatchObject({ id: first.id, device: ES, boundAt: NOW, provedAt: NOW + 1000 })
    expect(binding.spent).toBe(first.challenge.salt)
    expect(binding.challenge.salt).not.toBe(first.challenge.salt)
    expect(binding.values).toEqual([{ hash: hashOf(value), end: NOW + 1000 + LIFE }, ...first.values])
  })

  it('keeps a value as long as it is good, the last one longer, and eight at most', () => {
    expect(after(20, 1000).binding.values).toHaveLength(8)
    // Each has ended when the second after it is made.
    const { binding, values } = after(5, LIFE)
    expect(binding.values.map(({ hash }) => hash)).toEqual(values.slice(0, 2).map(hashOf))
    // The second to last has ended at the very moment of the proof.
    expect(after(5, LIFE / 2).binding.values).toHaveLength(2)
    const late = proved(after(3, 1000).binding, NOW + 10 * LIFE, LIFE).binding
    expect(late.values).toHaveLength(2)
  })

  it('is full with eight values that are all good, and no sooner', () => {
    const full = after(7, 1000).binding
    const firstEnd = NOW + LIFE
    expect(isFull(full, firstEnd - 1)).toBe(true)
    expect(isFull(full, firstEnd)).toBe(false)
    expect(isFull(after(6, 1000).binding, NOW + 7000)).toBe(false)
  })

  it('knows its values, and no others', () => {
    const { binding, values } = after(3, 1000)
    for (const [place, value] of values.entries()) expect(valueIn(binding, value)).toBe(binding.values[place])
    for (const other of ['', 'x', hashOf(values[0]!), `${values[0]}x`]) expect(valueIn(binding, other)).toBeNull()
  })
})

describe('a challenge', () => {
  const ID = 'i'.repeat(43)
  it('is answered for any of the IDs that lead to the session, and by what is of its own kind and salt', () => {
    const right = refreshChallenge(ID, SALT)
    expect(answers(right, [ID], SALT, refreshChallenge)).toBe(true)
    expect(answers(right, ['j'.repeat(43), ID], SALT, refreshChallenge)).toBe(true)
    expect(answers(right, ['j'.repeat(43)], SALT, refreshChallenge)).toBe(false)
    expect(answers(right, [], SALT, refreshChallenge)).toBe(false)
    expect(answers(right, [ID], 't'.repeat(16), refreshChallenge)).toBe(false)
    expect(answers(right, [ID], SALT, offerChallenge)).toBe(false)
    expect(answers(offerChallenge(ID, SALT), [ID], SALT, offerChallenge)).toBe(true)
    expect(answers('', [ID], SALT, refreshChallenge)).toBe(false)
    expect(answers(offerChallenge(ID, SALT), [ID], 't'.repeat(16), offerChallenge)).toBe(false)
  })

  it('that was never given is answered by nothing, also not by who has the ID', () => {
    for (const of of [offerChallenge, refreshChallenge]) expect(answers(of(ID, ''), [ID], '', of)).toBe(false)
  })
})
