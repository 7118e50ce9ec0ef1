// What a session keeps of its device, in its data and as rules.
import { describe, expect, it } from 'vitest'
import {
  answers,
  bindingIn,
  CHALLENGE_LIFE,
  deviceIn,
  isFull,
  keysOf,
  newBinding,
  newOffer,
  offerChallenge,
  offerIn,
  proved,
  put,
  refreshChallenge,
  valueIn,
} from '../../../src/device-bound/binding.ts'
import { hashOf } from '../../../src/session/id.ts'

const NOW = 1_800_000_000_000
const LIFE = 300_000
const KEY = 'k'.repeat(86)
const SALT = 's'.repeat(16)
const CREATED = NOW - 1000
const at = (now: number) => newBinding(KEY, CREATED, now, LIFE).binding

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

describe('in the data of a session', () => {
  const session = (data: object, createdAt = CREATED) => ({ data, createdAt })

  it('there may be an offer, a binding, or neither', () => {
    expect([deviceIn(session({ n: 1 })), bindingIn(session({})), offerIn(session({}), NOW)]).toEqual([null, null, null])
    const offered = session({ n: 1, ...newOffer(NOW) })
    expect(deviceIn(offered)).toEqual({ offer: expect.stringMatching(/^[\w-]{16}$/), at: NOW })
    expect(bindingIn(offered)).toBeNull()
    expect(offerIn(offered, NOW + CHALLENGE_LIFE - 1)).toMatch(/^[\w-]{16}$/)
    expect(offerIn(offered, NOW + CHALLENGE_LIFE)).toBeNull()
    put(offered.data as Record<string, unknown>, at(NOW))
    expect(Object.keys(offered.data)).toEqual(['n', '~device.1'])
    expect(bindingIn(offered)).toMatchObject({ of: CREATED, device: KEY })
    expect(offerIn(offered, NOW)).toBeNull()
  })

  it('an old copy that is written back takes the place of nothing newer', () => {
    const data: Record<string, unknown> = { n: 1, ...newOffer(NOW) }
    const copies: object[] = [{ ...data }]
    for (const now of [NOW, NOW + 1, NOW + 2]) {
      put(data, at(now))
      for (const copy of copies) expect(bindingIn(session({ ...data, ...copy }))?.boundAt).toBe(now)
      copies.push({ ...data })
    }
    // What was written back goes with the next write.
    Object.assign(data, copies[0], copies[1])
    put(data, at(NOW + 3))
    expect(Object.keys(data)).toEqual(['n', '~device.4'])
  })

  it('a binding that a later login carries over binds it to nothing', () => {
    const data: Record<string, unknown> = {}
    put(data, at(NOW))
    expect(deviceIn(session(data))).not.toBeNull()
    expect(deviceIn(session(data, CREATED + 1))).toBeNull()
  })

  it('it is told from what the application keeps', () => {
    const data = { n: 1, '~device': 2, '~device.x': 3, '~device.7': at(NOW) }
    expect(keysOf(data, 'application')).toEqual({ n: 1, '~device': 2, '~device.x': 3 })
    expect(keysOf(data, 'device')).toEqual({ '~device.7': data['~device.7'] })
  })

  it('it takes 1 KB at most', () => {
    expect(JSON.stringify({ '~device.123': after(20, 1000).binding }).length).toBeLessThan(1024)
    expect(JSON.stringify({ '~device.1': at(NOW) }).length).toBeLessThan(400)
  })
})

describe('a binding', () => {
  it('begins with one value, of which only the browser has the text, and the first challenge', () => {
    const { binding, value } = newBinding(KEY, CREATED, NOW, LIFE)
    expect(binding).toEqual({
      id: expect.stringMatching(/^[\w-]{16}$/),
      of: CREATED,
      device: KEY,
      boundAt: NOW,
      provedAt: NOW,
      challenge: { salt: expect.stringMatching(/^[\w-]{16}$/), end: NOW + LIFE + CHALLENGE_LIFE },
      values: [{ hash: hashOf(value), end: NOW + LIFE }],
    })
    expect(CHALLENGE_LIFE).toBe(300_000)
    expect(JSON.stringify(binding)).not.toContain(value)
  })

  it('has a new value and a new challenge after a proof, and keeps the rest', () => {
    const first = at(NOW)
    const { binding, value } = proved(first, NOW + 1000, LIFE)
    expect(binding).toMatchObject({ id: first.id, device: KEY, boundAt: NOW, provedAt: NOW + 1000 })
    expect(binding.challenge.salt).not.toBe(first.challenge.salt)
    expect(binding.values).toEqual([{ hash: hashOf(value), end: NOW + 1000 + LIFE }, ...first.values])
  })

  it('knows a value that has ended for five minutes more, however often the browser proves itself meanwhile', () => {
    const { binding: first, value } = newBinding(KEY, CREATED, NOW, LIFE)
    const afterIts = (later: number) => NOW + LIFE + later
    const second = proved(proved(first, afterIts(1000), LIFE).binding, afterIts(2000), LIFE).binding
    expect(valueIn(second, value)).toEqual({ hash: hashOf(value), end: NOW + LIFE })
    expect(valueIn(proved(second, afterIts(CHALLENGE_LIFE), LIFE).binding, value)).toBeNull()
  })

  it('keeps a value until five minutes after its end, the last one longer, and eight at most', () => {
    expect(after(20, 1000).binding.values).toHaveLength(8)
    // Each has ended when the second after it is made.
    const { binding, values } = after(5, LIFE)
    expect(binding.values.map(({ hash }) => hash)).toEqual(values.slice(0, 2).map(hashOf))
    // The last of these has ended at the moment of the proof before: not five minutes ago.
    expect(after(5, LIFE / 2).binding.values).toHaveLength(4)
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
