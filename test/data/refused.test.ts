// Data that is refused: nothing is written, and the old data stays.
import type { Session, SessionManager } from 'coatcheck'
import { expect, it } from 'vitest'
import { setUp, user } from '../support/manager-kit.ts'

const WRITES: [string, (sessions: SessionManager, session: Session, data: any) => Promise<unknown>][] = [
  ['create', (sessions, _, data) => sessions.create({ data })],
  ['logIn', (sessions, session, data) => sessions.logIn(session, { user, data })],
  [
    'a login whose data is a function',
    (sessions, session, data) => sessions.logIn(session, { user, data: () => data }),
  ],
  ['update', (sessions, session, data) => sessions.update(session, data)],
  [
    'update with a function',
    (sessions, session, data) => sessions.update(session, draft => void Object.assign(draft, data)),
  ],
]

async function refuses(write: (typeof WRITES)[number][1], data: unknown, message: RegExp) {
  const { sessions, store } = setUp()
  const session = await sessions.create({ data: { old: 1 } })
  store.reset()
  const error = await write(sessions, session, data).catch((thrown: unknown) => thrown)
  expect(error).toMatchObject({ code: 'ERR_SESSION_DATA', status: 500, message: expect.stringMatching(message) })
  expect(store.calls).toEqual([])
  expect((await sessions.get(session))?.data).toEqual({ old: 1 })
}

it.each(WRITES)('what JSON would silently change is refused by %s', (_, write) =>
  refuses(write, { at: new Date(0) }, /^data\.at: a Date would come back as text/),
)

/** Data of so many bytes. */
const ofSize = (bytes: number, character = 'x') => {
  const left = bytes - Buffer.byteLength('{"a":""}')
  const width = Buffer.byteLength(character)
  return { a: character.repeat(Math.floor(left / width)) + 'x'.repeat(left % width) }
}

it.each(['x', 'ä', '€', '😀'])('16 KiB of %s are accepted, and one byte more is not', async character => {
  await setUp().sessions.create({ data: ofSize(16_384, character) })
  await refuses(WRITES[0]![1], ofSize(16_385, character), /^data: 16385 bytes, at most 16384 are allowed/)
  await refuses(WRITES[3]![1], { old: undefined, ...ofSize(16_385, character) }, /^data: 16385 bytes/)
})

it('maxDataBytes moves the limit', async () => {
  const { sessions } = setUp({ maxDataBytes: 20 })
  await sessions.create({ data: ofSize(20) })
  await expect(sessions.create({ data: ofSize(21) })).rejects.toThrow('21 bytes, at most 20')
})

it.each([null, 7, 'text', [[]], [[1]], new Map(), Promise.resolve({}), new Date(0)])(
  'data of %o instead of an object is refused, not stored as something else',
  async wrong => {
    await refuses(WRITES[0]![1], wrong, /^data: expected an object, got /)
    await refuses(WRITES[2]![1], wrong, /^data: expected an object, got /)
  },
)
