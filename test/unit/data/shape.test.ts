import { describe, expect, it } from 'vitest'
import * as z from 'zod'
import { DataShape, deepFreeze } from '../../../src/data/schema.ts'
import { schemaOf } from '../../support/manager-kit.ts'

const decode = (text: string) => JSON.parse(text) as unknown
const shape = (options: object = {}) => new DataShape({ maxDataBytes: 16_384, ...options } as never)

describe('stored data that cannot be used begins anew, and the event says why', () => {
  const fails = () => {
    throw new Error('another key')
  }
  const codec = { encode: JSON.stringify, decode: fails }
  const initial = () => ({ n: 1 })
  const schema = z.object({ n: z.number().default(1) })
  it.each<[string, object, string, object, string]>([
    ['the codec cannot read it', { codec, initial }, 'x', { n: 1 }, 'stored data cannot be decoded: another key'],
    ...['null', '7', '"x"', '[1]'].map(
      text =>
        [`it is ${text}`, {}, text, {}, 'stored data is not an object'] as [string, object, string, object, string],
    ),
    ['the schema refuses it', { schema }, '{"n":"x"}', { n: 1 }, 'stored data does not fit the schema: data.n: '],
  ])('where %s', (_, options, text, anew, why) => {
    const { data, reset } = shape(options).decode(text)
    expect(data).toEqual(anew)
    expect([reset?.message, (reset?.cause as Error | undefined)?.message].join(': ')).toContain(why)
  })
})

it('a codec that gives no sound text is refused, each time with the same code', () => {
  for (const text of [7, undefined, '\ud800', 'a\0b'])
    expect(() => shape({ codec: { encode: () => text, decode } }).encode({})).toThrow(
      expect.objectContaining({
        code: 'ERR_SESSION_DATA',
        message: 'codec: encode must return well-formed text without NUL',
      }),
    )
})

it('data that a codec gives is shown frozen, whatever is in it, and a function in it is left alone', () => {
  const helper = () => 1
  const ring: Record<string, unknown> = { helper, none: null, missing: undefined, list: [{ a: 1 }] }
  ring.self = ring
  const { data } = shape({ codec: { encode: () => 'x', decode: () => ring } }).decode('x')
  const shown = deepFreeze(data) as typeof ring
  expect(Object.isFrozen(shown) && Object.isFrozen((shown.list as object[])[0])).toBe(true)
  expect(Object.isFrozen(helper)).toBe(false)
})

it('an issue of a schema without a path is about the data as a whole', () => {
  const schema = schemaOf((value: object) => ('bad' in value ? { issues: [{ message: 'is bad' }] } : { value }))
  expect(() => shape({ schema }).encode({ bad: 1 })).toThrow(
    expect.objectContaining({ code: 'ERR_SESSION_DATA', message: 'data: is bad' }),
  )
})

it('a schema that does not take the start value says so at once, with the reason', () => {
  const make = () => shape({ schema: z.object({ n: z.number() }) })
  expect(make).toThrow(/^schema: it must accept the start value \(initial\(\), else \{\}\) and its own output/)
  expect(make).toThrow(
    expect.objectContaining({ cause: expect.objectContaining({ message: expect.stringMatching(/^data\.n: /) }) }),
  )
})
