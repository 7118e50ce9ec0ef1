import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import fc from 'fast-check'
import { describe, expect, it, vi } from 'vitest'
import { SharedReads } from '../../stores/shared/shared-reads.ts'

const turn = () => new Promise<void>(resolve => setImmediate(resolve))
const NEVER = Number.POSITIVE_INFINITY

/** Notes what was asked for, and answers with each key in brackets. */
function noting(most = 100) {
  const asked: string[][] = []
  const reads = new SharedReads<string>(most, async keys => {
    asked.push([...keys])
    return keys.map(key => `<${key}>`)
  })
  return { reads, asked }
}

describe('reads of one turn', () => {
  it('are one command, also where each is asked for after microtasks of its own', async () => {
    const { reads, asked } = noting()
    const later = async (key: string) => {
      await null
      await null
      return reads.read(key, NEVER)
    }
    const answers = Promise.all([reads.read('a', NEVER), reads.read('b', NEVER), later('c')])
    expect(asked).toEqual([])
    expect(await answers).toEqual(['<a>', '<b>', '<c>'])
    expect(asked).toEqual([['a', 'b', 'c']])
  })

  it('never join a command that was sent, so that a read sees what was acknowledged before it', async () => {
    const asked: string[][] = []
    const answer: ((answers: string[]) => void)[] = []
    const reads = new SharedReads<string>(100, keys => {
      asked.push([...keys])
      return new Promise(resolve => answer.push(resolve))
    })
    const before = reads.read('a', NEVER)
    await turn()
    const after = reads.read('a', NEVER)
    await turn()
    expect(asked).toEqual([['a'], ['a']])
    answer[0]!(['old'])
    answer[1]!(['new'])
    expect([await before, await after]).toEqual(['old', 'new'])
  })

  it('bring each reader the answer for its key, ask for a key once, and for at most so many at a time', async () => {
    const key = fc.constantFrom(...Array.from({ length: 30 }, (_, i) => `key ${i}`))
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.array(key, { maxLength: 60, size: 'max' }), { maxLength: 4 }),
        fc.integer({ min: 1, max: 20 }),
        async (turns, most) => {
          const { reads, asked } = noting(most)
          for (const keys of turns) {
            const before = asked.length
            expect(await Promise.all(keys.map(each => reads.read(each, NEVER)))).toEqual(keys.map(each => `<${each}>`))
            const commands = asked.slice(before)
            expect(commands.flat()).toEqual([...new Set(keys)])
            expect(commands.length).toBe(Math.ceil(new Set(keys).size / most))
            for (const command of commands) expect(command.length).toBeLessThanOrEqual(most)
          }
        },
      ),
    )
  })

  it('share a command with those of the same place alone, and neither wait nor fail with others', async () => {
    const asked: string[][] = []
    const reads = new SharedReads<string>(
      2,
      keys => {
        asked.push([...keys])
        if (keys[0]![0] === 'b') return Promise.reject(new Error('lost'))
        return keys[0]![0] === 'c' ? new Promise(() => {}) : Promise.resolve([...keys])
      },
      key => key[0],
    )
    const [first, bad, second, , again, third] = ['a1', 'b1', 'a2', 'c1', 'a1', 'a3'].map(key => reads.read(key, NEVER))
    expect(await Promise.allSettled([first, bad, second, again, third])).toMatchObject([
      { value: 'a1' },
      { reason: { message: 'lost' } },
      { value: 'a2' },
      { value: 'a1' },
      { value: 'a3' },
    ])
    expect(asked).toEqual([['a1', 'a2'], ['a3'], ['b1'], ['c1']])
  })

  it('tell of the latest deadline: an early one concerns its own reader alone', async () => {
    const deadlines: number[] = []
    const reads = new SharedReads<string>(2, async (keys, deadline) => {
      deadlines.push(deadline)
      return [...keys]
    })
    await Promise.all([reads.read('a', 30), reads.read('b', 40), reads.read('c', 5), reads.read('b', 10)])
    expect(deadlines).toEqual([40, 5])
  })

  it('fail where asking throws, and where there are fewer answers than keys: neither is an absent session', async () => {
    const throwing = new SharedReads<string>(9, () => {
      throw new Error('no')
    })
    await expect(throwing.read('a', NEVER)).rejects.toThrow('no')
    const short = new SharedReads<string>(9, async keys => keys.slice(1))
    for (const outcome of await Promise.allSettled([short.read('a', NEVER), short.read('b', NEVER)]))
      expect(outcome).toMatchObject({ status: 'rejected', reason: { message: '1 answers for 2 keys' } })
    await expect(short.read('c', NEVER)).rejects.toThrow('0 answers for 1 keys')
  })

  describe('where an application has a fake clock', () => {
    it('are sent all the same', async () => {
      vi.useFakeTimers({ toFake: ['setImmediate', 'setTimeout', 'Date', 'performance'] })
      expect(await noting().reads.read('a', NEVER)).toBe('<a>')
    })

    it('are sent where the global setImmediate is missing or fake when the store is loaded, as where tests imitate a browser', async () => {
      for (const value of [undefined, () => {}]) {
        vi.resetModules()
        vi.stubGlobal('setImmediate', value)
        const { SharedReads: Loaded } = await import('../../stores/shared/shared-reads.ts')
        const reads = new Loaded<string>(9, async keys => [...keys])
        expect(await Promise.all([reads.read('a', NEVER), reads.read('b', NEVER)])).toEqual(['a', 'b'])
      }
    })
  })
})

it('the channel of shared reads hears of each command how many keys it asks for, and how many reads it answers', async () => {
  const heard: unknown[] = []
  const onMessage = (message: unknown) => heard.push(message)
  subscribe('coatcheck:shared-read', onMessage)
  const { reads } = noting(2)
  await reads.read('alone', NEVER)
  await Promise.all(['a', 'b', 'a', 'c', 'a'].map(key => reads.read(key, NEVER)))
  unsubscribe('coatcheck:shared-read', onMessage)
  expect(heard).toEqual([
    { keys: 1, reads: 1 },
    { keys: 2, reads: 4 },
    { keys: 1, reads: 1 },
  ])
})
