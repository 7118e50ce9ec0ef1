// Who tries when the file is locked, by a clock of the test.
import { SessionStoreError } from 'coatcheck'
import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { notBegun, Refusal } from '../../../../stores/sql/retry.ts'
import { Turns } from '../../../../stores/sql/sqlite/turns.ts'

const locked = (words = 'database is locked') => Object.assign(new Error(words), { code: 'SQLITE_BUSY' })

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['performance', 'setTimeout', 'clearTimeout'] })
  // The store takes between half of a pause and the whole of it.
  vi.spyOn(Math, 'random').mockReturnValue(1)
  vi.advanceTimersByTime(300)
})
afterEach(() => {
  vi.restoreAllMocks()
  vi.useRealTimers()
})

const now = () => performance.now()
const turn = () => new Promise(resolve => setImmediate(resolve))
/** Lets so many ms go by, with a turn of the event loop before and after each. */
async function passes(ms: number) {
  for (let i = 0; i < ms; i++) {
    await turn()
    vi.advanceTimersByTime(1)
  }
  await turn()
}

/** A file that is locked until told; `tries` says when who tried, in ms from now. */
function lockedFile() {
  const begun = now()
  const file = { isLocked: true, tries: [] as [number, string][] }
  const attempt = (name: string) => () => {
    file.tries.push([now() - begun, name])
    if (file.isLocked) throw locked(`${name} met the lock`)
    return name
  }
  return { file, attempt }
}

/** How a call ended, as soon as it has. */
function watched<T>(call: T | Promise<T>) {
  const seen: { value?: T; error?: SessionStoreError } = {}
  Promise.resolve(call).then(
    value => {
      seen.value = value
    },
    error => {
      seen.error = error
    },
  )
  return seen
}

it('answers at once, and without a promise, while nothing is locked', () => {
  expect(new Turns().run('read', now() + 100, () => 'row')).toBe('row')
  expect(vi.getTimerCount()).toBe(0)
})

it('asks the file nothing when the time is over', () => {
  for (const end of [now(), now() - 1]) {
    const late = () => new Turns().run('read', end, () => expect.unreachable())
    expect(late).toThrow(SessionStoreError)
    const cause = expect.objectContaining({ message: 'the deadline passed before the database was asked' })
    expect(late).toThrow(expect.objectContaining({ operation: 'read', outcome: 'not-applied', cause }))
  }
})

it('fails at once of what is no lock, and waits for none', () => {
  const turns = new Turns()
  const failed = (error: unknown) => {
    try {
      return turns.run('update', now() + 100, () => {
        throw error
      })
    } catch (thrown) {
      return thrown
    }
  }
  const ioError = Object.assign(new Error('disk I/O error'), { code: 'SQLITE_IOERR_WRITE' })
  expect(failed(ioError)).toMatchObject({ operation: 'update', outcome: 'unknown' })
  expect(failed(notBegun('closed'))).toMatchObject({ outcome: 'not-applied', cause: { message: 'closed' } })
  expect(vi.getTimerCount()).toBe(0)
})

it('pauses longer from try to try, up to 25 ms, and answers as soon as the lock is gone', async () => {
  const { file, attempt } = lockedFile()
  const seen = watched(new Turns().run('update', now() + 500, attempt('one')))
  await passes(70)
  expect(file.tries.map(([at]) => at)).toEqual([0, 2, 6, 14, 30, 55])
  file.isLocked = false
  await passes(9)
  expect(seen).toEqual({})
  await passes(1)
  expect(seen).toEqual({ value: 'one' })
  expect(vi.getTimerCount()).toBe(0)
})

it('takes half of a pause at the least', async () => {
  vi.mocked(Math.random).mockReturnValue(0)
  const { file, attempt } = lockedFile()
  watched(new Turns().run('update', now() + 500, attempt('one')))
  await passes(17)
  expect(file.tries.map(([at]) => at)).toEqual([0, 1, 3, 7, 15])
})

it('lets the first of those who wait try for all, and the others follow in their order without a pause', async () => {
  const { file, attempt } = lockedFile()
  const turns = new Turns()
  const seen = ['one', 'two', 'three'].map(name => watched(turns.run('update', now() + 500, attempt(name))))
  await passes(5)
  expect(file.tries).toEqual([
    [0, 'one'],
    [2, 'one'],
  ])
  file.isLocked = false
  await passes(1)
  for (let i = 0; i < 4; i++) await turn()
  expect(file.tries.slice(2)).toEqual([
    [6, 'one'],
    [6, 'two'],
    [6, 'three'],
  ])
  expect(seen).toEqual([{ value: 'one' }, { value: 'two' }, { value: 'three' }])
})

it('lets the event loop run between two that follow each other', async () => {
  const { file, attempt } = lockedFile()
  const turns = new Turns()
  for (const name of ['one', 'two', 'three']) watched(turns.run('update', now() + 500, attempt(name)))
  await turn()
  file.isLocked = false
  vi.advanceTimersByTime(2)
  expect(file.tries.length).toBe(2)
  await turn()
  expect(file.tries.length).toBeLessThanOrEqual(3)
})

it('begins with a short pause again after a lock, and runs calls at once between two locks', async () => {
  const { file, attempt } = lockedFile()
  const turns = new Turns()
  const first = watched(turns.run('update', now() + 500, attempt('one')))
  await passes(20)
  file.isLocked = false
  await passes(10)
  expect(first).toEqual({ value: 'one' })
  expect(turns.run('update', now() + 500, attempt('two'))).toBe('two')
  file.isLocked = true
  const before = file.tries.at(-1)![0]
  watched(turns.run('update', now() + 500, attempt('three')))
  await passes(7)
  expect(file.tries.slice(-3).map(([at]) => at - before)).toEqual([0, 2, 6])
})

it('begins with a short pause again where the next one meets a new lock', async () => {
  const { file, attempt } = lockedFile()
  const turns = new Turns()
  const seen = ['one', 'two'].map(name => watched(turns.run('update', now() + 500, attempt(name))))
  await passes(20)
  file.isLocked = false
  vi.advanceTimersByTime(10)
  expect(file.tries.at(-1)).toEqual([30, 'one'])
  file.isLocked = true
  for (let i = 0; i < 2; i++) await turn()
  await passes(7)
  expect(seen).toEqual([{ value: 'one' }, {}])
  expect(file.tries.slice(-3)).toEqual([
    [30, 'two'],
    [32, 'two'],
    [36, 'two'],
  ])
})

it('gives up a call at its time, wherever it stands, and tries it no more', async () => {
  const { file, attempt } = lockedFile()
  const turns = new Turns()
  const ends = [500, 20, 500]
  const seen = ['one', 'two', 'three'].map((name, i) => watched(turns.run('touch', now() + ends[i]!, attempt(name))))
  await passes(21)
  expect(seen.map(({ error }) => error?.outcome)).toEqual([undefined, 'not-applied', undefined])
  expect(seen[1]!.error).toMatchObject({ operation: 'touch', cause: { message: 'one met the lock' } })
  file.isLocked = false
  await passes(30)
  expect(file.tries.some(([, name]) => name === 'two')).toBe(false)
  expect(seen.map(({ value }) => value)).toEqual(['one', undefined, 'three'])
  expect(vi.getTimerCount()).toBe(0)
})

it('does not try a call whose time was over before its turn, though its timer could not ring', async () => {
  const { file, attempt } = lockedFile()
  const turns = new Turns()
  const end = now() + 400
  const blocking = () => {
    const answer = attempt('one')()
    vi.spyOn(performance, 'now').mockReturnValue(end)
    return answer
  }
  const first = watched(turns.run('touch', end + 100, blocking))
  const second = watched(turns.run('touch', end, attempt('two')))
  await turn()
  file.isLocked = false
  vi.advanceTimersByTime(2)
  for (let i = 0; i < 3; i++) await turn()
  expect(first).toEqual({ value: 'one' })
  expect(second.error).toMatchObject({ outcome: 'not-applied' })
  expect(file.tries.map(([, name]) => name)).toEqual(['one', 'one'])
  expect(vi.getTimerCount()).toBe(0)
})

it('says what stood in the way of the last try', async () => {
  const turns = new Turns()
  let tries = 0
  const attempt = () => {
    tries += 1
    throw tries === 1 ? locked('first') : new Refusal('the connection is taken', { outcome: 'unknown', retry: true })
  }
  const seen = watched(turns.run('create', now() + 9, attempt))
  await passes(10)
  expect(tries).toBe(3)
  expect(seen.error).toMatchObject({
    operation: 'create',
    outcome: 'unknown',
    cause: { message: 'the connection is taken' },
  })
})

it('fails of what is no lock in its turn too, and goes on with the next', async () => {
  const { file, attempt } = lockedFile()
  const turns = new Turns()
  const attempts = [
    () => {
      if (file.isLocked) throw locked()
      throw new Error('no such table')
    },
    attempt('two'),
  ]
  const seen = attempts.map(each => watched<unknown>(turns.run('update', now() + 500, each)))
  await turn()
  file.isLocked = false
  await passes(4)
  expect(seen[0]!.error).toMatchObject({
    operation: 'update',
    outcome: 'not-applied',
    cause: { message: 'no such table' },
  })
  expect(seen[1]).toEqual({ value: 'two' })
})
