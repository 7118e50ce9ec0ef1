// Waiting for replicas on a connection of the store's own; what that answers, and the clock, are the test's.
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { type Dedicated, type Link, NotReady } from '../../../stores/redis/link.ts'
import { ReplicaWaiter, TooFewReplicas } from '../../../stores/redis/replicas.ts'
import { DELETE, END } from '../../../stores/redis/scripts.ts'

beforeEach(() => {
  vi.useFakeTimers()
})
afterEach(() => {
  vi.useRealTimers()
})

const after = (ms: number) => new Promise<void>(resolve => setTimeout(resolve, ms))

class Connection implements Dedicated {
  readonly sent: string[][] = []
  isClosed = false
  isUsable = true
  readonly #answer: (args: string[]) => unknown

  constructor(answer: (args: string[]) => unknown) {
    this.#answer = answer
  }

  async send(args: string[]) {
    this.sent.push(args)
    return this.#answer(args)
  }

  usable() {
    return this.isUsable
  }

  close() {
    this.isClosed = true
  }
}

const fails = (message: string) => {
  throw new Error(message)
}

/** A waiter for two replicas; each connection that it opens answers as the test says. */
function waiting(answer: (args: string[]) => unknown, open: () => unknown = () => {}) {
  const opened: { shard: string; connection: Connection }[] = []
  const link = {
    master: (shard: string) => shard[0],
    async dedicate(shard: string) {
      await open()
      const connection = new Connection(answer)
      opened.push({ shard, connection })
      return connection
    },
  } as unknown as Link
  const waiter = new ReplicaWaiter(link, 2)
  const run = (name: string, { shard = 'abc', left = 1000, script = DELETE } = {}) =>
    waiter.run(shard, script, [name], performance.now() + left).catch((error: Error) => error)
  return { waiter, opened, run }
}
const sound = ([command, , name]: string[]) => (command === 'WAIT' ? 2 : `answer to ${name}`)
const waitsOf = (connection: Connection) => connection.sent.filter(([command]) => command === 'WAIT')

describe('an answer that replicas have to acknowledge', () => {
  it('comes when they have', async () => {
    const { run, opened } = waiting(sound)
    expect(await run('a')).toBe('answer to a')
    expect(opened).toHaveLength(1)
    // Four fifths of the time that is left.
    expect(opened[0]!.connection.sent).toEqual([
      ['EVALSHA', DELETE.sha, 'a'],
      ['WAIT', '2', '800'],
    ])
    const { run: odd, opened: others } = waiting(sound)
    await odd('a', { left: 1001.9 })
    expect(waitsOf(others[0]!.connection)).toEqual([['WAIT', '2', '801']])
  })

  it('comes where more have than are needed', async () => {
    const { run } = waiting(args => (args[0] === 'WAIT' ? '3' : sound(args)))
    expect(await run('a')).toBe('answer to a')
  })

  it('comes over one connection for each master', async () => {
    const { run, opened } = waiting(sound)
    await Promise.all([run('a'), run('b', { shard: 'axy' }), run('c', { shard: 'bxy' })])
    expect(await run('d')).toBe('answer to d')
    expect(opened.map(({ shard }) => shard)).toEqual(['abc', 'bxy'])
  })

  it('is waited for together with those that are asked for meanwhile', async () => {
    const { run, opened } = waiting(async args => {
      if (args[0] === 'WAIT') await after(50)
      return sound(args)
    })
    const first = run('a')
    await vi.advanceTimersByTimeAsync(10)
    const others = [run('b', { left: 500 }), run('c')]
    await vi.advanceTimersByTimeAsync(200)
    expect(await Promise.all([first, ...others])).toEqual(['answer to a', 'answer to b', 'answer to c'])
    // The earliest deadline decides: 500 ms, of which 40 had gone.
    expect(waitsOf(opened[0]!.connection).map(([, , timeout]) => timeout)).toEqual(['800', '368'])
    const late = run('d')
    await vi.advanceTimersByTimeAsync(200)
    expect(await late).toBe('answer to d')
  })

  it('is an error where too few have in time, and nobody knows what became of it', async () => {
    const { run, opened } = waiting(async args => {
      if (args[0] !== 'WAIT') return sound(args)
      await after(Number(args[2]))
      return 1
    })
    const answer = run('a', { left: 400 })
    await vi.advanceTimersByTimeAsync(1000)
    expect(await answer).toEqual(new TooFewReplicas('1 of 2 replicas acknowledged in time'))
    expect(await answer).toBeInstanceOf(TooFewReplicas)
    // 80 ms were left: too few to ask again.
    expect(waitsOf(opened[0]!.connection)).toHaveLength(1)
  })

  /** Calls that share a wait: the first one of all has one of its own. */
  const sharing = (run: ReturnType<typeof waiting>['run'], lefts: readonly number[]) =>
    Promise.all([run('first'), ...lefts.map((left, i) => run('abc'[i]!, { left }))])

  it('is waited for again where there is time: one that has less of it fails alone', async () => {
    let isShort = false
    const { run, opened } = waiting(async args => {
      if (args[0] !== 'WAIT') return sound(args)
      if (waitsOf(opened[0]!.connection).length === 1) return 2
      isShort = !isShort
      if (!isShort) return 2
      await after(Number(args[2]))
      return 0
    })
    const answers = sharing(run, [200, 1000, 1000])
    await vi.advanceTimersByTimeAsync(2000)
    expect(await answers).toEqual([
      'answer to first',
      new TooFewReplicas('0 of 2 replicas acknowledged in time'),
      'answer to b',
      'answer to c',
    ])
    expect(waitsOf(opened[0]!.connection).map(([, , timeout]) => timeout)).toEqual(['800', '160', '672'])
  })

  it('fails where 100 ms are no longer left, and is waited for again where they are', async () => {
    const { run, opened } = waiting(async args => {
      if (args[0] !== 'WAIT') return sound(args)
      if (waitsOf(opened[0]!.connection).length !== 2) return 2
      await after(160)
      return 0
    })
    const answers = sharing(run, [261, 259, 260])
    await vi.advanceTimersByTimeAsync(2000)
    expect((await answers).map(answer => answer instanceof TooFewReplicas)).toEqual([false, false, true, false])
  })

  it('is given up one by one where Redis does not wait as long as it is told', async () => {
    const { run, opened } = waiting(args => (args[0] === 'WAIT' ? 0 : sound(args)))
    for (const each of await sharing(run, [1000, 1000])) expect(each).toBeInstanceOf(TooFewReplicas)
    expect(waitsOf(opened[0]!.connection)).toHaveLength(3)
  })

  it('is given up for all at once where no time is left', async () => {
    const { run, opened } = waiting(args => (args[0] === 'WAIT' ? 0 : sound(args)))
    for (const left of [1, -50]) {
      opened[0]?.connection.sent.splice(0)
      for (const each of await sharing(run, [left, 1000, 1000])) expect(each).toBeInstanceOf(TooFewReplicas)
      expect(waitsOf(opened[0]!.connection).map(([, , timeout]) => timeout)).toEqual(['800', '1'])
    }
  })

  it('is one that nobody knows of where the connection breaks before they have', async () => {
    const { run } = waiting(args => (args[0] === 'WAIT' ? fails('read ECONNRESET') : sound(args)))
    const answer = await run('a')
    expect(answer).toEqual(new TooFewReplicas('the connection broke before replicas acknowledged'))
    expect(answer).toMatchObject({ cause: { message: 'read ECONNRESET' } })
  })

  it('is not waited for where the command fails, and the others are', async () => {
    const { run, opened } = waiting(args => (args[2] === 'a' ? fails('OOM command not allowed') : sound(args)))
    expect(await run('a')).toMatchObject({ message: 'OOM command not allowed' })
    expect(waitsOf(opened[0]!.connection)).toEqual([])
    expect(await sharing(run, [1000, 1000])).toMatchObject([
      'answer to first',
      { message: expect.stringMatching(/^OOM/) },
      'answer to b',
    ])
    expect(opened[0]!.connection.isClosed).toBe(false)
  })
})

describe('the connection on which replicas are waited for', () => {
  it('gets a script whole where its server does not know it', async () => {
    const { run, opened } = waiting(args => (args[0] === 'EVALSHA' ? fails('NOSCRIPT no such script') : sound(args)))
    expect(await run('a', { script: END })).toBe('answer to a')
    expect(opened[0]!.connection.sent.slice(0, 2)).toEqual([
      ['EVALSHA', END.sha, 'a'],
      ['EVAL', END.source, 'a'],
    ])
  })

  it.each(['READONLY a replica', 'MOVED 1 127.0.0.1:1'])(
    'is closed where its server is no longer the master: %s',
    async message => {
      const { run, opened } = waiting(() => fails(message))
      expect(await run('a')).toMatchObject({ message })
      expect(opened[0]!.connection.isClosed).toBe(true)
      // Also where it says for a while that it can be used: what was sent on it would fail.
      expect(opened[0]!.connection.usable()).toBe(true)
      await run('b')
      expect(opened).toHaveLength(2)
    },
  )

  it('lets the client look where a slot has gone to another master, with a key that it may read', async () => {
    const looked: unknown[] = []
    const looking = (message: string, isReady = true) => {
      const link = {
        master: () => '',
        dedicate: async () => new Connection(() => fails(message)),
        notReadyReason: () => (isReady ? null : 'away'),
        send: async (...sent: unknown[]) => {
          looked.push(sent)
          throw new Error('not there')
        },
      } as unknown as Link
      const waiter = new ReplicaWaiter(link, 1)
      const run = (tail: string[]) => waiter.run('abc', DELETE, tail, performance.now() + 1000)
      return expect(run(['1', 'key', 'late'])).rejects.toThrow(message)
    }
    await looking('MOVED 1 127.0.0.1:1')
    await looking('ASK 1 127.0.0.1:1')
    const look = ['abc', ['GET', 'key']]
    expect(looked).toEqual([look, look])
    await looking('READONLY a replica')
    await looking('MOVED 1 127.0.0.1:1', false)
    expect(looked).toEqual([look, look])
  })

  it('is opened anew where it broke, and the broken one is closed', async () => {
    const { run, opened } = waiting(sound)
    await run('a')
    opened[0]!.connection.isUsable = false
    expect(await run('b')).toBe('answer to b')
    expect(opened).toHaveLength(2)
    expect(opened.map(({ connection }) => connection.isClosed)).toEqual([true, false])
    await run('c')
    expect(opened).toHaveLength(2)
  })

  it('is tried again by the next call where it cannot be opened', async () => {
    let failures = 3
    const { run, opened } = waiting(sound, () => {
      if (failures-- > 0) fails('connect ECONNREFUSED')
    })
    expect(await Promise.all([run('a'), run('b')])).toMatchObject(
      ['a', 'b'].map(() => ({ message: expect.stringMatching(/REFUSED/) })),
    )
    expect(await run('c')).toMatchObject({ message: 'connect ECONNREFUSED' })
    expect(await run('d')).toBe('answer to d')
    opened[0]!.connection.isUsable = false
    failures = 1
    expect(await run('e')).toMatchObject({ message: 'connect ECONNREFUSED' })
    expect(await run('f')).toBe('answer to f')
  })

  it('is closed with the store, and another is opened for a later call', async () => {
    const { waiter, run, opened } = waiting(sound)
    await Promise.all([run('a'), run('b', { shard: 'bxy' })])
    waiter.close()
    expect(opened.map(({ connection }) => connection.isClosed)).toEqual([true, true])
    expect(await run('c')).toBe('answer to c')
    expect(opened).toHaveLength(3)
  })

  it('is closed with the store, also where it is ready only then', async () => {
    const { waiter, run, opened } = waiting(sound, () => after(100))
    const answer = run('a')
    waiter.close()
    await vi.advanceTimersByTimeAsync(500)
    expect(await answer).toEqual(new NotReady('the store was closed'))
    expect(await answer).toBeInstanceOf(NotReady)
    expect(opened.map(({ connection }) => connection.isClosed)).toEqual([true])
  })

  it('is not opened for what still waits when the store is closed', async () => {
    const { waiter, run, opened } = waiting(sound, () => after(100))
    const answers = [run('a')]
    await vi.advanceTimersByTimeAsync(10)
    answers.push(run('b'))
    waiter.close()
    await vi.advanceTimersByTimeAsync(500)
    expect(await Promise.all(answers)).toEqual([1, 2].map(() => new NotReady('the store was closed')))
    expect(opened).toHaveLength(1)
  })
})
