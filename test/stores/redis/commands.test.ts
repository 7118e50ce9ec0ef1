// When a command is sent, how often, and until when; the clock is one of the test.
import { SessionStoreError } from 'coatcheck'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { Commands, deadlineOf, endOf, pause, storeError, TooLate } from '../../../stores/redis/commands.ts'
import { type Link, NotReady } from '../../../stores/redis/link.ts'
import { type ReplicaWaiter, TooFewReplicas } from '../../../stores/redis/replicas.ts'
import { UPDATE } from '../../../stores/redis/scripts.ts'

beforeEach(() => {
  vi.useFakeTimers()
  // Pauses are as long as they can be, but for what a timer rounds off.
  vi.spyOn(Math, 'random').mockReturnValue(1)
})
afterEach(() => {
  vi.restoreAllMocks()
  vi.useRealTimers()
})

/** A link whose client does what the test says. */
const linked = (more: Partial<Link>): Link => ({
  cluster: false,
  keyPrefix: '',
  notReadyReason: () => null,
  send: async () => null,
  masters: () => [],
  master: () => '',
  dedicate: () => Promise.reject(new Error('not here')),
  ...more,
})
/** Answers what came of it, once the clock of the test has gone on far enough. */
const outcomeOf = async <T>(work: Promise<T>): Promise<T | Error> => {
  const outcome = work.catch((error: Error) => error)
  await vi.advanceTimersByTimeAsync(60_000)
  return outcome
}
const passing = () => new Error('LOADING the data')
const run = { shard: 'abc', keys: ['k'], now: 7, args: [1, 'x'] }
const began = () => performance.now()

describe('a call', () => {
  it('has two seconds where its caller names no deadline', () => {
    expect(deadlineOf(undefined)).toBe(began() + 2000)
    expect(deadlineOf(5)).toBe(5)
  })

  it('ends a quarter of its time before its deadline, and no more than 100 ms', () => {
    expect(endOf(began() + 200)).toBe(began() + 150)
    expect(endOf(began() + 400)).toBe(began() + 300)
    expect(endOf(began() + 4000)).toBe(began() + 3900)
  })

  it('pauses as long as it is told', async () => {
    let isOver = false
    void pause(30).then(() => {
      isOver = true
    })
    await vi.advanceTimersByTimeAsync(29)
    expect(isOver).toBe(false)
    await vi.advanceTimersByTimeAsync(1)
    expect(isOver).toBe(true)
  })
})

describe('a command', () => {
  it('is sent again while Redis says that it may do it in a moment, ever more seldom, until the call ends', async () => {
    const start = began()
    const sent: number[] = []
    const failing = new Commands(
      linked({
        send: async () => {
          sent.push(began() - start)
          throw passing()
        },
      }),
      null,
    )
    expect(await outcomeOf(failing.read('abc', ['GET', 'k'], start + 1000))).toMatchObject({
      message: 'LOADING the data',
    })
    expect(sent).toEqual([0, 10, 30, 70, 150, 310, 510, 710])
    // No pause is begun that would last until the end.
    for (const [time, times] of [
      [40, 2],
      [41, 3],
    ] as const) {
      sent.length = 0
      await outcomeOf(failing.read('abc', ['GET', 'k'], began() + time))
      expect(sent).toHaveLength(times)
    }
    vi.spyOn(Math, 'random').mockReturnValue(0)
    sent.length = 0
    const from = began()
    await outcomeOf(failing.read('abc', ['GET', 'k'], from + 100))
    expect(sent.map(at => at + start - from)).toEqual([0, 5, 15, 35])
  })

  it('is answered as soon as Redis does it', async () => {
    let left = 3
    const recovering = new Commands(
      linked({
        send: async () => {
          if (left-- > 0) throw passing()
          return 'value'
        },
      }),
      null,
    )
    expect(await outcomeOf(recovering.read('abc', ['GET', 'k'], undefined))).toBe('value')
  })

  it('is not sent again where Redis says anything else', async () => {
    const send = vi.fn(async () => {
      throw new Error('OOM command not allowed')
    })
    const refused = new Commands(linked({ send }), null)
    expect(await outcomeOf(refused.read('abc', ['GET', 'k'], undefined))).toMatchObject({
      message: expect.stringMatching(/^OOM/),
    })
    expect(send).toHaveBeenCalledTimes(1)
  })

  it('waits for a client that makes its first connection, and not for one that lost it', async () => {
    let reason: string | null = 'connecting'
    const send = vi.fn(async () => 'value')
    const commands = new Commands(linked({ notReadyReason: () => reason, send }), null)
    expect(await outcomeOf(commands.read('abc', ['GET', 'k'], began() + 1000))).toEqual(new NotReady('connecting'))
    setTimeout(() => {
      reason = null
    }, 400)
    expect(await outcomeOf(commands.read('abc', ['GET', 'k'], began() + 1000))).toBe('value')
    expect(send).toHaveBeenCalledTimes(1)
    reason = 'lost'
    let failedAt = Number.NaN
    const start = began()
    await outcomeOf(
      commands.read('abc', ['GET', 'k'], start + 1000).catch(() => {
        failedAt = began() - start
      }),
    )
    expect(failedAt).toBe(0)
  })

  it('gives up on a first connection when the call ends, and not before', async () => {
    const start = began()
    const asked: number[] = []
    const notReadyReason = () => {
      asked.push(began() - start)
      return 'connecting'
    }
    const away = new Commands(linked({ notReadyReason }), null)
    expect(await outcomeOf(away.first('abc', start + 250, async () => 'never'))).toEqual(new NotReady('connecting'))
    expect(asked).toEqual([0, 10, 30, 70, 150])
    asked.length = 0
    await outcomeOf(away.first('abc', began() + 40, async () => 'never'))
    expect(asked).toHaveLength(2)
  })

  it('that is sent at once is not sent where the client is not ready', () => {
    let reason: string | null = 'connecting'
    const commands = new Commands(linked({ notReadyReason: () => reason, send: async () => 'value' }), null)
    expect(commands.atOnce('abc', 'GET', ['k'])).toBe(null)
    reason = null
    expect(commands.atOnce('abc', 'GET', ['k'])).toBeInstanceOf(Promise)
  })

  it('that was sent at once shows that there was a connection: none is waited for afterwards', async () => {
    let reason: string | null = null
    const commands = new Commands(linked({ notReadyReason: () => reason }), null)
    await commands.atOnce('abc', 'GET', ['k'])
    reason = 'lost'
    const asked = vi.fn(async () => 'never')
    const start = began()
    const failed = commands.first('abc', start + 1000, asked).catch(() => began() - start)
    await vi.advanceTimersByTimeAsync(5000)
    expect(await failed).toBe(0)
  })

  it('for several keys goes another way where the client has one, and one for a key does not', async () => {
    const send = vi.fn(async (_shard: string, args: string[]) => ['send', ...args])
    const sendTogether = vi.fn(async (_shard: string, args: string[]) => ['together', ...args])
    const both = new Commands(linked({ send, sendTogether }), null)
    expect(await both.atOnce('abc', 'MGET', ['k', 'l'])).toEqual(['together', 'MGET', 'k', 'l'])
    expect(await both.atOnce('abc', 'GET', ['k'])).toEqual(['send', 'GET', 'k'])
    const one = new Commands(linked({ send }), null)
    expect(await one.atOnce('abc', 'MGET', ['k', 'l'])).toEqual(['send', 'MGET', 'k', 'l'])
  })
})

/** What answers scripts as a server does: its clock is ahead of the test's, and the way to it takes `delay` ms. */
class Answering {
  readonly ahead: Record<string, number>
  delay = 0
  /** How much later than the server's clock each script was allowed to run, in its turn. */
  readonly allowed: number[] = []
  readonly sent: string[][] = []

  constructor(ahead: Record<string, number>) {
    this.ahead = ahead
  }

  readonly send = async (shard: string, args: string[]): Promise<unknown> => {
    this.sent.push(args)
    if (this.delay > 0) await pause(this.delay)
    const clock = began() + this.ahead[shard]!
    // Command, script, number of keys, key, deadline.
    const until = Number(args[4])
    this.allowed.push(until === 0 ? Number.NaN : until - clock)
    if (this.delay > 0) await pause(this.delay)
    return clock > until ? ['late', clock] : ['done', clock, 'more', 8]
  }
}

describe('a script', () => {
  const scripts = (link: Partial<Link>, replicas: object | null = null) => {
    const commands = new Commands(linked(link), replicas as ReplicaWaiter | null)
    return (more: object = {}, deadline = began() + 1000) =>
      outcomeOf(commands.run(UPDATE, { ...run, ...more }, deadline) as Promise<unknown>)
  }

  it('is told the caller’s clock and until when it may run, 2 ms before the deadline on the server’s clock', async () => {
    const server = new Answering({ abc: 1_000_000 })
    const send = scripts(server)
    expect(await send()).toEqual(['done', 'more', 8])
    // The first only asks for the server's clock.
    expect(server.allowed).toEqual([Number.NaN, 998])
    const [first] = server.sent
    expect(first).toEqual(['EVALSHA', UPDATE.sha, '1', 'k', '0', '7', '1', 'x'])
    await send({ keys: ['k', 'l'] })
    expect(server.sent[2]!.slice(2, 5)).toEqual(['2', 'k', 'l'])
  })

  it('is told whole milliseconds', async () => {
    const server = new Answering({ abc: 1_000_000 })
    const send = scripts(server)
    await send({}, began() + 1000.7)
    expect(server.sent[1]![4]).toMatch(/^[0-9]+$/)
    expect(server.allowed[1]).toBe(998)
  })

  it('runs never late and at most as much too early as the way takes, though the server’s clock is set meanwhile', async () => {
    const server = new Answering({ abc: 1_000_000 })
    const send = scripts(server)
    server.delay = 10
    // It was sent 10 ms before the server saw it.
    const spare = (index: number, delay: number) => server.allowed[index]! - (1000 - 2 - delay)
    await send()
    expect(spare(1, 20 + 10)).toBe(-10)
    server.delay = 0
    await send()
    expect(spare(2, 0)).toBe(-10)
    await send()
    expect(spare(3, 0)).toBe(0)
    server.delay = 10
    await send()
    await send()
    expect(spare(5, 10)).toBe(0)
    server.delay = 0
    server.ahead.abc! -= 50
    await send()
    await send()
    expect(spare(7, 0)).toBe(0)
    server.ahead.abc! += 70
    await send()
    await send()
    expect(spare(9, 0)).toBe(0)
  })

  it('goes by the clock of the master that has the slot, and by the last one where that is unknown', async () => {
    const server = new Answering({ abc: 1_000_000, xyz: 1_000_100, '123': 1_000_100 })
    const send = scripts({ ...server, send: server.send, cluster: true })
    await send()
    await send({ shard: 'xyz' })
    await send({ shard: '123' })
    await send()
    expect(server.allowed).toEqual([Number.NaN, 998, 898, 998, 998])
  })

  it('is given up where the server comes to it after the deadline', async () => {
    const server = new Answering({ abc: 1_000_000 })
    const send = scripts(server)
    await send()
    server.delay = 300
    expect(await send({}, began() + 200)).toEqual(new TooLate('the server came to the command after its deadline'))
    expect(server.sent).toHaveLength(3)
    const unknown = new Answering({ abc: 1_000_000 })
    unknown.delay = 300
    expect(await scripts(unknown)({}, began() + 600)).toBeInstanceOf(TooLate)
    expect(unknown.sent).toHaveLength(1)
  })

  it('is sent whole where the server does not know it', async () => {
    const sent: string[][] = []
    const send = async (_: string, args: string[]) => {
      sent.push(args)
      if (args[0] === 'EVALSHA') throw new Error('NOSCRIPT No matching script. Please use EVAL.')
      return ['done', 0]
    }
    expect(await scripts({ send })()).toEqual(['done'])
    expect(sent).toEqual([
      ['EVALSHA', UPDATE.sha, '1', 'k', '0', '7', '1', 'x'],
      ['EVAL', UPDATE.source, '1', 'k', '0', '7', '1', 'x'],
    ])
  })

  it('is not sent whole where the server refuses it for another reason', async () => {
    const send = vi.fn(async () => {
      throw new Error('NOPERM no right to evalsha')
    })
    expect(await scripts({ send })()).toMatchObject({ message: expect.stringMatching(/^NOPERM/) })
    expect(send).toHaveBeenCalledTimes(1)
  })

  it.each([null, 'OK', 1, { 0: 'done' }])('fails where a client answers %j for it', async answer => {
    expect(await scripts({ send: async () => answer })()).toEqual(
      new Error('the answer of a script was not understood'),
    )
  })

  it('may answer Buffers', async () => {
    expect(await scripts({ send: async () => [Buffer.from('done'), 0] })()).toEqual(['done'])
  })

  it('is left to those who wait for replicas only where they have to acknowledge it', async () => {
    const server = new Answering({ abc: 1_000_000 })
    const replicas = { run: vi.fn(async () => ['acknowledged', 0]) }
    const send = scripts(server, replicas)
    expect(await send()).toEqual(['done', 'more', 8])
    expect(await send({ acknowledged: false })).toEqual(['done', 'more', 8])
    expect(replicas.run).not.toHaveBeenCalled()
    const deadline = began() + 1000
    expect(await send({ acknowledged: true }, deadline)).toEqual(['acknowledged'])
    expect(replicas.run).toHaveBeenCalledWith('abc', UPDATE, expect.arrayContaining(['1', 'k', '7']), deadline)
    expect(await scripts(server)({ acknowledged: true })).toEqual(['done', 'more', 8])
  })

  it('may have run where it was refused and a connection broke meanwhile, with a client that sends again', async () => {
    let breaks = 3
    let isBreaking = false
    const send = async () => {
      if (isBreaking) breaks++
      throw new Error('OOM command not allowed')
    }
    const outcome = async (link: Partial<Link>) => storeError('update', await scripts(link)(), true, false)
    expect(await outcome({ send, breaks: () => breaks })).toMatchObject({ outcome: 'not-applied' })
    isBreaking = true
    expect(await outcome({ send, breaks: () => breaks })).toMatchObject({
      outcome: 'unknown',
      cause: {
        message: 'a connection broke, and the client may have sent the command twice',
        cause: { message: 'OOM command not allowed' },
      },
    })
    expect(await outcome({ send })).toMatchObject({ outcome: 'not-applied' })
  })
})

describe('the error of a verb', () => {
  const outcomeFor = (error: unknown, writes: boolean, partly: boolean) =>
    (storeError('update', error, writes, partly) as SessionStoreError).outcome
  const refused = new Error('OOM command not allowed')
  const broken = new Error('read ECONNRESET')

  it('says that nothing was written where nothing was to be, or the server refused all of it', () => {
    for (const error of [refused, broken, new TooLate('late')])
      expect(outcomeFor(error, false, true)).toBe('not-applied')
    expect(outcomeFor(refused, true, false)).toBe('not-applied')
    expect(outcomeFor(new TooLate('late'), true, false)).toBe('not-applied')
    expect(outcomeFor(new NotReady('away'), true, false)).toBe('not-applied')
  })

  it('says that nobody knows where no answer came, or something was written before', () => {
    expect(outcomeFor(broken, true, false)).toBe('unknown')
    for (const error of [refused, broken, new TooLate('late')]) expect(outcomeFor(error, true, true)).toBe('unknown')
    // The script had run: what refused the WAIT after it says nothing of that.
    for (const cause of [refused, new NotReady('away'), new Error("Stream isn't writeable and …"), broken])
      expect(outcomeFor(new TooFewReplicas('broke', { cause }), true, false)).toBe('unknown')
  })

  it('names the verb, and has the reason as its cause only', () => {
    expect(storeError('update', refused, true, false)).toMatchObject({
      message: 'update: the store failed',
      operation: 'update',
      cause: { message: 'OOM command not allowed' },
    })
    const known = new SessionStoreError('read', 'unknown', 'x')
    expect(storeError('update', known, false, false)).toBe(known)
  })
})
