import fc from 'fast-check'
import { afterEach, describe, expect, it, onTestFinished, vi } from 'vitest'
import { bigintReplacer, stringify } from '../../../src/text/json.ts'
import { anyText } from '../../support/any-text.ts'

const ODD = {
  withBoxedValues: true,
  withDate: true,
  withMap: true,
  withNullPrototype: true,
  withSparseArray: true,
  withTypedArray: true,
}

describe('stringify', () => {
  it('writes user IDs that no double holds, to the last digit', () => {
    expect(stringify({ id: 2n ** 64n - 1n, name: 'max' })).toBe('{"id":18446744073709551615,"name":"max"}')
    expect(stringify([0n, -1n, 2n ** 53n + 1n])).toBe('[0,-1,9007199254740993]')
    expect(stringify(7n)).toBe('7')
    expect(stringify(Object(2n ** 64n))).toBe('18446744073709551616')
  })

  it('does not ask the common patch BigInt.prototype.toJSON', () => {
    const prototype = BigInt.prototype as { toJSON?: unknown }
    prototype.toJSON = function (this: bigint) {
      return String(this)
    }
    onTestFinished(() => void delete prototype.toJSON)
    expect(stringify({ id: 5n })).toBe('{"id":5}')
  })

  it('says the same as JSON.stringify about what has its own toJSON, and what no JSON has', () => {
    const cases: unknown[] = [
      ...[undefined, null, () => 1, Symbol('s')],
      Object.assign(() => 1, { toJSON: () => 'from a function' }),
      [new Number(3), new String('x"y'), new Boolean(false), Object(Symbol('s'))],
      [{ toJSON: (key: string) => ({ key }) }, { p: new Date(0) }],
      new Proxy({ a: [1] }, {}),
      [{ toJSON: () => undefined }],
    ]
    for (const value of cases) expect(stringify(value)).toBe(JSON.stringify(value))
  })

  it('refuses a value that contains itself', () => {
    const ring: { self?: unknown; id: bigint } = { id: 1n }
    ring.self = [ring]
    expect(() => stringify(ring)).toThrow(TypeError)
  })

  it('agrees with JSON.stringify on any value without a bigint', () => {
    fc.assert(
      fc.property(fc.anything(ODD), value => {
        expect(stringify(value)).toBe(JSON.stringify(value))
      }),
      { numRuns: 150 },
    )
  })

  it('leaves text alone that looks like what stands for a bigint on the way', () => {
    const uuid = '01234567-89ab-4cde-8f01-23456789abcd'
    for (const given of [`${uuid}42`, `"${uuid}42"`, '42', '42n', '$1', "$&$'"]) {
      const value = { [given]: [given, 2n ** 64n] }
      const json = JSON.stringify(given)
      expect(stringify(value)).toBe(`{${json}:[${json},18446744073709551616]}`)
    }
  })

  it('writes JSON that any parser reads, bigints wherever they stand', () => {
    const source = fc.letrec(tie => ({
      value: fc.oneof({ depthSize: 'small' }, fc.bigInt(), anyText(), tie('list'), tie('record')),
      list: fc.array(tie('value')),
      record: fc.dictionary(fc.string(), tie('value')),
    })).value
    fc.assert(
      fc.property(source, value => {
        const json = stringify(value)
        const plain = JSON.stringify(value, (_key, item) => (typeof item === 'bigint' ? Number(item) : item))
        expect(JSON.parse(json)).toEqual(JSON.parse(plain))
      }),
      { numRuns: 150 },
    )
  })
})

describe('bigintReplacer', () => {
  const hasRawJson = 'rawJSON' in JSON
  const without = () => vi.stubGlobal('JSON', { stringify: JSON.stringify })
  afterEach(() => {
    vi.unstubAllGlobals()
  })
  const max = { id: 2n ** 64n - 1n, name: 'max' }

  it.runIf(hasRawJson)('makes JSON.stringify write user IDs that no double holds, to the last digit', () => {
    expect(JSON.stringify(max, bigintReplacer)).toBe('{"id":18446744073709551615,"name":"max"}')
    expect(JSON.stringify({ user: max, ids: [0n, -1n, Object(7n)] }, bigintReplacer)).toBe(
      '{"user":{"id":18446744073709551615,"name":"max"},"ids":[0,-1,7]}',
    )
    expect(JSON.stringify(5n, bigintReplacer)).toBe('5')
  })

  it('writes safe integers exactly on any Node.js, and says what to do about others', () => {
    without()
    expect(JSON.stringify({ id: 42n, ids: [-(2n ** 53n) + 1n, Object(7n)] }, bigintReplacer)).toBe(
      '{"id":42,"ids":[-9007199254740991,7]}',
    )
    for (const id of [2n ** 53n, -(2n ** 53n), 2n ** 64n - 1n]) {
      expect(() => JSON.stringify({ id }, bigintReplacer)).toThrow(TypeError)
      expect(() => JSON.stringify({ id }, bigintReplacer)).toThrow(/"id".*stringify\(value\)/)
    }
  })

  it('does not ask the common patch BigInt.prototype.toJSON, which may round', () => {
    const prototype = BigInt.prototype as { toJSON?: unknown }
    prototype.toJSON = function (this: bigint) {
      return Number(this)
    }
    onTestFinished(() => void delete prototype.toJSON)
    expect(JSON.stringify({ id: 5n, big: ['a'] }, bigintReplacer)).toBe('{"id":5,"big":["a"]}')
    // By another replacer, which does not say of whose member it speaks.
    expect(JSON.stringify({ id: 5n }, (key, value) => bigintReplacer.call(undefined, key, value))).toBe('{"id":5}')
    if (hasRawJson) expect(JSON.stringify([2n ** 64n - 1n], bigintReplacer)).toBe('[18446744073709551615]')
    without()
    expect(() => JSON.stringify([2n ** 64n - 1n], bigintReplacer)).toThrow(TypeError)
  })

  it('makes JSON.stringify say what stringify says, about any value', () => {
    const anything = fc.anything({ withBigInt: hasRawJson, ...ODD })
    const small = fc.dictionary(fc.string(), fc.bigInt({ min: -(2n ** 53n) + 1n, max: 2n ** 53n - 1n }))
    fc.assert(
      fc.property(fc.oneof(anything, small), value => {
        expect(JSON.stringify(value, bigintReplacer)).toBe(stringify(value))
      }),
      { numRuns: 150 },
    )
  })
})
