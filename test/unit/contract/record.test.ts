// What the author of a store can ask of a row that others can edit.
import { corruption, type SessionRecord } from 'coatcheck/custom-store'
import { describe, expect, it } from 'vitest'
import { recordAt } from '../../support/records.ts'

const KEY = `${'aZ0_-'.repeat(9)}a`

const sound = recordAt(0, { key: KEY, absoluteExpiresAt: 8_640_000_000_000_000 })

describe('a sound record', () => {
  it.each<[string, Partial<SessionRecord>]>([
    ['of a user', {}],
    ['of an anonymous visitor', { userId: null, userName: null }],
    ['of a user with an empty name', { userName: '' }],
    ['of user 0', { userId: '0' }],
    ['that is a series, begun by a session', { kind: 'remember', parent: KEY }],
    ['with the least password version', { passwordVersion: 0 }],
    ['with the greatest password version', { passwordVersion: 0xffff_ffff }],
    ['with data and a write ID that are empty', { data: '', writeId: '' }],
    ['with the greatest version', { version: Number.MAX_SAFE_INTEGER }],
  ])('%s has no corruption', (_, change) => {
    expect(corruption({ ...sound, ...change })).toBeNull()
  })
})

describe('an impossible record', () => {
  const malformedKeys = ['', KEY.slice(1), `${KEY}a`, `${KEY.slice(1)}+`, `${KEY}\n`, `\n${KEY}`, 42, null, [KEY]]

  it.each<[string, Record<string, readonly unknown[]>]>([
    ['key is malformed', { key: malformedKeys }],
    ['kind is unknown', { kind: ['', 'Session', 'remembered', null, 1] }],
    ['parent is malformed', { parent: malformedKeys.filter(parent => parent !== null) }],
    ['user ID without name, or name without user ID', { userId: [null], userName: [null] }],
    ['user ID is empty', { userId: ['', 42, 42n, {}] }],
    ['name is not text', { userName: [42, true, {}] }],
    [
      'password version is not an unsigned 32-bit number',
      { passwordVersion: [-1, 0.5, 2 ** 32, Number.NaN, '1', true, undefined] },
    ],
    ['data is not text', { data: [null, {}, 1] }],
    ['version is not a positive number', { version: [0, -1, 1.5, 2 ** 53, Number.POSITIVE_INFINITY, '1', null] }],
    ['write ID is not text', { writeId: [null, 1, {}] }],
    ...(['createdAt', 'seenAt', 'expiresAt', 'absoluteExpiresAt'] as const).map(
      (name): [string, Record<string, readonly unknown[]>] => [
        `${name} is not an instant`,
        { [name]: [-1, 0.5, 8_640_000_000_000_001, '0', 0n, new Date(), null, undefined, Number.NaN] },
      ],
    ),
  ])('is told as: %s', (reason, fields) => {
    for (const [name, values] of Object.entries(fields))
      for (const value of values) expect(corruption({ ...sound, [name]: value }), `${name}: ${value}`).toBe(reason)
  })

  it('is told without anything of its content', () => {
    for (const name of Object.keys(sound))
      expect(String(corruption({ ...sound, [name]: ['hunter2'] as never }))).not.toContain('hunter2')
  })
})
