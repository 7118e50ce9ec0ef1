// What a function that edits data may return: nothing, or what an edit gives.
import { expect, it } from 'vitest'
import { runChange } from '../../../src/data/change.ts'

const data = () => ({
  n: 1,
  none: null,
  tags: ['a', 'b'],
  queue: [{ id: 1 }, { id: 2 }],
  deep: { list: [3, 1, 2] },
  missing: undefined,
})
type Data = ReturnType<typeof data>
const run = (change: (draft: Data) => unknown) => {
  const draft = data()
  runChange(change, draft, data)
  return draft
}

it.each<[string, (draft: Data) => unknown]>([
  ['a copy with a change', d => ({ ...d, n: d.n + 1 })],
  ['a part of the keys', d => ({ n: d.n + 1 })],
  [
    'a copy, after an edit',
    d => {
      d.tags.push('c')
      return { ...d, n: d.n + 1 }
    },
  ],
  ['a filtered list', d => d.tags.filter(tag => tag === 'a')],
  ['a copy of a part', d => ({ ...d.deep })],
  ['an instance', () => new Map()],
  ['a function', d => () => d],
])('%s would be lost: a TypeError says what to do', (_, change) => {
  expect(() => run(change)).toThrow(TypeError)
  expect(() => run(change)).toThrow(
    /^update: .+ that the function returned would be lost: edit the draft and return nothing, as in data => \{ data\.n \+= 1 \}$/,
  )
})

it.each<[string, (draft: Data) => unknown, Partial<Data>]>([
  ['n++', d => d.n++, { n: 2 }],
  ['push of an object', d => d.queue.push({ id: 3 }), { queue: [{ id: 1 }, { id: 2 }, { id: 3 }] }],
  ['pop of text', d => d.tags.pop(), { tags: ['a'] }],
  ['shift of an object', d => d.queue.shift(), { queue: [{ id: 2 }] }],
  ['splice of objects', d => d.queue.splice(1), { queue: [{ id: 1 }] }],
  ['an assigned list', d => (d.tags = d.tags.filter(tag => tag === 'b')), { tags: ['b'] }],
  ['an assigned object', d => (d.deep = { list: [] }), { deep: { list: [] } }],
  [
    'a part of it',
    d => {
      d.deep.list.push(4)
      return d.deep
    },
    { deep: { list: [3, 1, 2, 4] } },
  ],
  [
    'null',
    d => {
      d.n = 3
      return null
    },
    { n: 3 },
  ],
])('%s is an edit like any other', (_, change, expected) => {
  expect(run(change)).toEqual({ ...data(), ...expected })
})

it('an asynchronous function is refused, and what it rejects with later is not an unhandled rejection', async () => {
  const unhandled: unknown[] = []
  const listen = (reason: unknown) => unhandled.push(reason)
  process.on('unhandledRejection', listen)
  expect(() => run(() => Promise.reject(new Error('later')))).toThrow(
    new TypeError('update: make the function synchronous: it may run again after a conflict'),
  )
  await new Promise(resolve => setImmediate(resolve))
  process.off('unhandledRejection', listen)
  expect(unhandled).toEqual([])
})

it('a cycle that a function makes is left to the codec, which refuses it', () => {
  const close = (draft: { self?: object }) => (draft.self = draft)
  expect(() => runChange(close, {}, () => ({}))).not.toThrow()
})
