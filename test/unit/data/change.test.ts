import { describe, expect, it } from 'vitest'
import { runChange } from '../../../src/data/change.ts'

const run = <D extends object>(data: D, change: (draft: D) => unknown) => {
  const draft = structuredClone(data)
  runChange(change, draft, () => structuredClone(data))
  return draft
}

describe('a function edits its draft', () => {
  it('whatever the data has in it: null, text, numbers, nested arrays', () => {
    const data = { none: null, text: 'x', count: 1, list: [null, [0, 'a']], missing: undefined, yes: true }
    expect(
      run(data, draft => {
        draft.count += 1
      }),
    ).toEqual({ ...data, count: 2 })
  })

  it('and may return what an assignment, pop, shift, sort, push and splice return', () => {
    const data = { user: { name: 'ada' }, list: [{ a: 1 }, { a: 2 }], none: null as null | object }
    for (const change of [
      (draft: typeof data) => (draft.user = { name: 'max' }),
      (draft: typeof data) => draft.list.pop(),
      (draft: typeof data) => draft.list.shift(),
      (draft: typeof data) => draft.list.sort(),
      (draft: typeof data) => draft.list.push({ a: 3 }),
      (draft: typeof data) => draft.list.splice(0, 1),
      (draft: typeof data) => (draft.none = null),
    ])
      expect(() => run(data, change)).not.toThrow()
  })
})

describe('a function that returns what would be lost', () => {
  it.each([
    ['a new object', { a: 1 }, 'an object'],
    ['an array of nothing that was there', [1], 'an array'],
    ['a function', () => 1, 'a function'],
  ])('%s, is told to edit the draft', (_, returned, quoted) => {
    expect(() => run({ n: 1 }, () => returned)).toThrow(
      new TypeError(
        `update: ${quoted} that the function returned would be lost: edit the draft and return nothing, as in data => { data.n += 1 }`,
      ),
    )
  })

  it('or is asynchronous, is refused, and what it rejects with later is not an unhandled rejection', async () => {
    const unhandled: unknown[] = []
    const listen = (reason: unknown) => unhandled.push(reason)
    process.on('unhandledRejection', listen)
    expect(() => run({ n: 1 }, () => Promise.reject(new Error('later')))).toThrow(
      new TypeError('update: make the function synchronous: it may run again after a conflict'),
    )
    await new Promise(resolve => setImmediate(resolve))
    process.off('unhandledRejection', listen)
    expect(unhandled).toEqual([])
  })
})

it('a cycle that a function makes is left to the codec, which refuses it', () => {
  const draft: { self?: object } = {}
  expect(() =>
    runChange(
      (data: typeof draft) => {
        data.self = data
        return data
      },
      draft,
      () => ({}),
    ),
  ).not.toThrow()
})
