import { isDeepStrictEqual } from 'node:util'
import { createContext, runInContext } from 'node:vm'
import { SessionError } from 'coatcheck'
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { jsonCodec } from '../../../src/data/codec.ts'
import { anyText } from '../../support/any-text.ts'

const cycle: Record<string, unknown> = { a: {} }
cycle.a = { back: cycle }
const deep = (levels: number) => {
  let value: unknown = 1
  for (let level = 0; level < levels; level += 1) value = { a: value }
  return value as object
}
class Point {
  x = 1
}
class Rows extends Array<number> {}
const sparse = [1, 2, 3]
delete sparse[1]
const hidden = Object.defineProperty({ a: 1 }, 'b', { value: 2, enumerable: false })
const hiddenToJson = Object.defineProperty([1], 'toJSON', { value: () => 'gone', enumerable: false })

const refused: [string, object][] = [
  ['data.id: JSON has no bigint: store its decimal text', { id: 1n }],
  ['data.b: JSON has no symbol', { a: -0, b: Symbol('s') }],
  ['data.at: a Date would come back as text', { at: new Date(0) }],
  ['data.tags: a Map or Set would come back empty', { tags: new Set([1]) }],
  ['data.n: JSON has no NaN', { n: Number.NaN }],
  ['data.n: JSON has no Infinity', { n: Number.POSITIVE_INFINITY }],
  ['data.f: JSON has no function', { f: () => 1 }],
  ['data.s: JSON has no symbol', { s: Symbol('s') }],
  ['data: has a symbol for a key', { [Symbol('s')]: 1 }],
  ['data.a.back: is a cycle', cycle],
  ['data.list[1]: JSON has no undefined', { list: [1, undefined] }],
  ['data.list: is an array with holes or with names', { list: sparse }],
  ['data.list: is an array with holes or with names', { list: Object.assign(new Array(3), [1, 2]) }],
  ['data.list: is an array with holes or with names', { list: Object.assign([1], { name: 'x' }) }],
  ['data.list: is an array with holes or with names', { list: Object.assign(new Array(2), { 1: 1, name: 'x' }) }],
  ['data.list: has a key that JSON does not see', { list: Object.defineProperty([1], 'hidden', { value: 1 }) }],
  ['data.list: only plain objects and arrays come back as they were, this is Rows', { list: new Rows(3).fill(1) }],
  ['data.p: only plain objects and arrays come back as they were, this is Point', { p: new Point() }],
  ['data.b: only plain objects and arrays come back as they were, this is Buffer', { b: Buffer.from('x') }],
  ['data.list: only plain objects and arrays come back as they were', { list: Object.setPrototypeOf([1], [2]) }],
  ['data.o: only plain objects', { o: Object.create({ inherited: 1 }) }],
  ['data.o: only plain objects and arrays come back as they were, this is something else', { o: new (class {})() }],
  ['as they were, this is something else', { o: Object.create({ constructor: { name: 7 } }) }],
  ['data.o: only plain objects', { o: Object.create(Object.assign(Object.create(null), { inherited: 1 })) }],
  ['data.list: has a toJSON method', { list: hiddenToJson }],
  ['data.o: has a toJSON method', { o: { toJSON: () => 1 } }],
  ['data.o: has a key that JSON does not see', { o: hidden }],
  ['data.a["b c"][0].d: JSON has no bigint', { a: { 'b c': [{ d: 1n }] } }],
  ['data["__proto__"]: this key', JSON.parse('{"__proto__":{"isAdmin":true}}')],
  ['data.constructor: this key', { constructor: { prototype: {} } }],
  ['is nested deeper than 100 levels', deep(101)],
  ['is nested deeper than 100 levels', deep(100_000)],
]

// `__proto__` is an identifier: either way of writing its path will do.
const loose = (message: string) => message.replace('["__proto__"]', '.__proto__')

it.each(refused)('what JSON would silently change is refused: %s', (message, data) => {
  expect(() => jsonCodec.encode(data)).toThrow(SessionError)
  expect(() => jsonCodec.encode(data)).toThrow(loose(message))
  expect(({} as { isAdmin?: boolean }).isAdmin).toBeUndefined()
})

it('-0 becomes 0, as JSON.stringify writes it, and an undefined member is an absent one', () => {
  const data = { n: -0, list: [-1, 1e21], absent: undefined, '"quoted"\ud800': '-0' }
  const kept = { n: 0, list: [-1, 1e21], '"quoted"\ud800': '-0' }
  expect(isDeepStrictEqual(jsonCodec.decode(jsonCodec.encode(data)), kept)).toBe(true)
})

it('nothing else changes without a word: what is accepted is deep-strict-equal to what comes back', () => {
  const { node } = fc.letrec<{ node: unknown }>(tie => ({
    node: fc.oneof(
      { depthSize: 'medium' },
      fc.oneof(
        fc.double().map(number => (number === 0 ? 0 : number)),
        fc.integer(),
        anyText(),
        fc.boolean(),
        fc.constant(null),
      ),
      fc.array(tie('node'), { maxLength: 4 }),
      fc.dictionary(anyText(), tie('node'), { maxKeys: 4, noNullPrototype: true }),
      { weight: 1, arbitrary: fc.anything({ withSparseArray: true, withBoxedValues: true, values: [fc.integer()] }) },
    ),
  }))
  let [accepted, refused] = [0, 0]
  fc.assert(
    fc.property(node, value => {
      let text: string
      try {
        text = jsonCodec.encode({ value })
      } catch (error) {
        expect(error).toBeInstanceOf(SessionError)
        refused += 1
        return
      }
      accepted += 1
      expect(isDeepStrictEqual(jsonCodec.decode(text), { value })).toBe(true)
    }),
    { numRuns: 200 },
  )
  expect(accepted).toBeGreaterThan(40)
  expect(refused).toBeGreaterThan(5)
})

it('every JSON document that is an object is accepted, but for the forbidden keys', () => {
  fc.assert(
    fc.property(fc.dictionary(anyText(), fc.jsonValue({ maxDepth: 5 })), data => {
      fc.pre(!/"(__proto__|constructor)":/.test(JSON.stringify(data)))
      // fast-check makes objects without a prototype too.
      expect(jsonCodec.decode(jsonCodec.encode(data))).toEqual(JSON.parse(JSON.stringify(data)))
      expect(jsonCodec.encode(data)).toBe(JSON.stringify(data))
    }),
    { numRuns: 300 },
  )
})

it('one object in two places is no cycle, objects of another realm are plain, and 100 levels are deep enough', () => {
  const shared = { a: 1 }
  expect(jsonCodec.decode(jsonCodec.encode({ x: shared, y: [shared, shared] }))).toEqual({
    x: shared,
    y: [shared, shared],
  })
  const foreign = runInContext('({ a: [1, { b: null }] })', createContext({}))
  expect(jsonCodec.encode(foreign)).toBe('{"a":[1,{"b":null}]}')
  expect(() => jsonCodec.encode(deep(100))).not.toThrow()
})
