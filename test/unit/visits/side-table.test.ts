import { describe, expect, it } from 'vitest'
import { SideTable } from '../../../src/visits/side-table.ts'

describe('a side table', () => {
  const objects: [string, object][] = [
    ['an object', {}],
    ['a frozen object', Object.freeze({})],
    ['a function', () => {}],
    ['a proxy', new Proxy({}, {})],
    ['a Request', new Request('https://localhost/')],
  ]

  it.each(objects)('finds the value beside %s, in each table its own', (_, object) => {
    const [one, other] = [new SideTable<object, string>(), new SideTable<object, string>()]
    expect(one.get(object)).toBeUndefined()
    one.set(object, 'one')
    expect(other.get(object)).toBeUndefined()
    other.set(object, 'other')
    expect([one.get(object), other.get(object)]).toEqual(['one', 'other'])
  })

  it('finds nothing beside a copy, what inherits from an object, or a proxy of it', () => {
    const object = { a: 1 }
    const table = new SideTable<object, string>()
    table.set(object, 'value')
    for (const relative of [{ ...object }, Object.create(object), new Proxy(object, {})])
      expect(table.get(relative)).toBeUndefined()
  })

  it('leaves no trace at an object', () => {
    const object = { a: 1 }
    new SideTable<object, string>().set(object, 'value')
    expect(Reflect.ownKeys(object)).toEqual(['a'])
  })

  it.each([undefined, null, 7, 'text', Symbol('s')])('finds nothing beside %s, which is no object', value => {
    expect(new SideTable<object, string>().get(value as unknown as object)).toBeUndefined()
  })
})
