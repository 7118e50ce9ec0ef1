// How a statement of a connection of pg is cancelled: by a second connection to the same server. The connections here
// only note what they are asked; what a server makes of it is in given-up.test.ts.
import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { cancelStatement } from '../../../../stores/sql/postgres/cancel.ts'

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
})
afterEach(() => {
  vi.useRealTimers()
})

/** A connection of pg, and what the one that cancels for it was asked. */
function client(changes: object = {}, broken = false) {
  const notes: unknown[][] = []
  const listeners = new Map<string, () => void>()
  class Connection {
    readonly stream = { destroy: () => notes.push(['destroy']) }
    constructor(config: object) {
      notes.push(['new', config])
    }
    on(event: string, listener: () => void) {
      listeners.set(event, listener)
    }
    connect(...to: unknown[]) {
      notes.push(['connect', ...to])
      if (broken) throw new Error('no such socket')
    }
    requestSsl() {
      notes.push(['requestSsl'])
    }
    cancel(...keys: unknown[]) {
      notes.push(['cancel', ...keys])
    }
  }
  const connection = Object.create(Connection.prototype)
  const given = { processID: 7, secretKey: 8, host: 'db', port: 5432, ssl: false, connection, ...changes }
  return { given: given as never, notes, emit: (event: string) => listeners.get(event)?.() }
}

it('asks by the key of the connection, and takes the end of the second one for an answer', async () => {
  const { given, notes, emit } = client()
  const taken = cancelStatement(given, 'stream', 1000)
  expect(notes).toEqual([
    ['new', { ssl: false, sslNegotiation: undefined, stream: 'stream' }],
    ['connect', 5432, 'db'],
  ])
  emit('connect')
  expect(notes.at(-1)).toEqual(['cancel', 7, 8])
  emit('end')
  expect(await taken).toBe(true)
  expect(notes.at(-1)).toEqual(['destroy'])
  expect(vi.getTimerCount()).toBe(0)
})

it('asks a server for TLS before it says the key', async () => {
  const { given, notes, emit } = client({ ssl: true })
  const taken = cancelStatement(given, undefined, 1000)
  emit('connect')
  expect(notes.at(-1)).toEqual(['requestSsl'])
  emit('sslconnect')
  expect(notes.at(-1)).toEqual(['cancel', 7, 8])
  emit('error')
  expect(await taken).toBe(true)
})

it('asks nobody for TLS where the connection begins with it', async () => {
  const { given, notes, emit } = client({ ssl: true, sslNegotiation: 'direct' })
  const taken = cancelStatement(given, undefined, 1000)
  expect(notes[0]).toEqual(['new', { ssl: true, sslNegotiation: 'direct', stream: undefined }])
  emit('connect')
  expect(notes.length).toBe(2)
  emit('sslconnect')
  emit('end')
  expect(await taken).toBe(true)
})

it('finds the socket of a server on the same machine in its folder', () => {
  const { given, notes } = client({ host: '/var/run/postgresql' })
  void cancelStatement(given, undefined, 1000)
  expect(notes[1]).toEqual(['connect', '/var/run/postgresql/.s.PGSQL.5432'])
})

it('lets pg choose the host where none is named', () => {
  const { given, notes } = client({ host: undefined })
  void cancelStatement(given, undefined, 1000)
  expect(notes[1]).toEqual(['connect', 5432, undefined])
})

it.each(['error', 'end'])('was not heard where the second connection ends before the key was said: %s', async event => {
  const { given, emit } = client()
  const taken = cancelStatement(given, undefined, 1000)
  emit(event)
  expect(await taken).toBe(false)
})

it('gives up after its time, and closes the second connection', async () => {
  const { given, notes, emit } = client()
  const taken = cancelStatement(given, undefined, 1000)
  emit('connect')
  vi.advanceTimersByTime(999)
  expect(notes).not.toContainEqual(['destroy'])
  vi.advanceTimersByTime(1)
  expect(await taken).toBe(false)
  expect(notes.at(-1)).toEqual(['destroy'])
})

it('was not heard where there is no way to the server', async () => {
  const { given, notes } = client({}, true)
  expect(await cancelStatement(given, undefined, 1000)).toBe(false)
  expect(notes.at(-1)).toEqual(['destroy'])
  const broken = client({ connection: {} as object })
  Object.assign(broken.given, { connection: { constructor: null } })
  expect(await cancelStatement(broken.given, undefined, 1000)).toBe(false)
  expect(vi.getTimerCount()).toBe(0)
})

it.each([{ processID: undefined }, { secretKey: null }, { secretKey: '8' }, { connection: undefined }])(
  'makes no request for a connection that says too little of itself: %j',
  changes => {
    const { given, notes } = client(changes)
    expect(cancelStatement(given, undefined, 1000)).toBe(null)
    expect(notes).toEqual([])
    expect(vi.getTimerCount()).toBe(0)
  },
)
