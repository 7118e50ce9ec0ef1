import { describe, expect, it } from 'vitest'
import { NotReady } from '../../../stores/redis/link.ts'
import { isLasting, isPassing, isReply, refusalOf, withoutArguments } from '../../../stores/redis/refusals.ts'

const PASSING = ['ASK', 'CLUSTERDOWN', 'LOADING', 'MASTERDOWN', 'MOVED', 'READONLY', 'TRYAGAIN']
const STAYING = ['BUSY', 'CROSSSLOT', 'MISCONF', 'NOAUTH', 'NOPERM', 'NOREPLICAS', 'NOSCRIPT', 'OOM']
const ALL = [...PASSING, ...STAYING, 'WRONGPASS', 'WRONGTYPE']

describe('an error of a client', () => {
  it.each(ALL)('says that Redis refused the command where it answered %s', code => {
    for (const message of [
      code,
      `${code} for a reason`,
      `-${code} for a reason`,
      `ERR Error running script (call to f_1): @user_script:1: ${code} for a reason`,
      `ERR Error running script (call to f_1): @user_script:1: @user_script: 1: -${code} for a reason`,
    ])
      expect(refusalOf(new Error(message))).toBe(code)
    expect(isReply(new Error(`${code} for a reason`))).toBe(true)
    expect(isPassing(new Error(`${code} for a reason`))).toBe(PASSING.includes(code))
  })

  it.each(['connect ECONNREFUSED', 'ERR no MOVED here', 'XMOVED 1', 'MOVED1', 'a:MOVED 1', ''])(
    'leaves open whether the command was run where it says %j',
    message => {
      expect(refusalOf(new Error(message))).toBe(null)
      expect(isPassing(new Error(message))).toBe(false)
    },
  )

  it('may hold the answer of Redis in its cause', () => {
    const wrapped = new Error('Too many redirections', {
      cause: new Error('outer', { cause: new Error('MOVED 1 a:1') }),
    })
    expect(refusalOf(wrapped)).toBe('MOVED')
    expect(refusalOf(new Error('Too many redirections', { cause: 'MOVED' }))).toBe(null)
  })

  it('may say that a master has no slot yet: the slot is moving', () => {
    expect(refusalOf(new Error('Cannot find node 127.0.0.1:7001'))).toBe('ASK')
    expect(refusalOf(new Error('It Cannot find node 127.0.0.1:7001'))).toBe(null)
  })

  it('may say that ioredis sent none of the commands that it joined: slots are moving', () => {
    const error = new Error('All keys in the pipeline should belong to the same slots allocation group')
    expect([refusalOf(error), isPassing(error)]).toEqual(['TRYAGAIN', true])
    expect(refusalOf(new Error(`No: ${error.message}`))).toBe(null)
  })

  it('may say that ioredis had no connection, and sent nothing', () => {
    const error = new Error("Stream isn't writeable and enableOfflineQueue options is false")
    expect([refusalOf(error), isReply(error), isPassing(error), isLasting(error)]).toEqual([
      'NOTREADY',
      false,
      false,
      false,
    ])
    expect(refusalOf(new Error(`No: ${error.message}`))).toBe(null)
  })

  it('may be none: what is rejected with a text tells nothing', () => {
    for (const value of ['MOVED 1 a:1', undefined, null, { message: 'MOVED 1 a:1' }]) {
      expect(refusalOf(value)).toBe(null)
      expect(isReply(value)).toBe(false)
      expect(isLasting(value)).toBe(false)
    }
  })

  it('is no answer of Redis where nothing was sent', () => {
    const error = new NotReady('OOM')
    expect(refusalOf(error)).toBe('NOTREADY')
    expect([isReply(error), isPassing(error), isLasting(error)]).toEqual([false, false, false])
  })

  it('is an answer of Redis, and will be the same next time, where the command is unknown or not allowed', () => {
    for (const [message, ...expected] of [
      ["ERR unknown command 'MGET'", true, true],
      ['NOPERM no right to mget', true, true],
      ['OOM command not allowed', true, false],
      ['LOADING the data', true, false],
      ['ERRATIC', false, false],
      ['an ERR', false, false],
      ['read ECONNRESET', false, false],
    ] as const)
      expect([isReply(new Error(message)), isLasting(new Error(message))]).toEqual(expected)
  })
})

describe('the cause of an error of the store', () => {
  it('has the name, the text, the stack and the code of the error of the client, and nothing else', () => {
    const error = Object.assign(new TypeError('read ECONNRESET'), { code: 'ECONNRESET', command: { args: ['secret'] } })
    const plain = withoutArguments(error)
    expect(plain).not.toBe(error)
    expect(plain).toMatchObject({
      name: 'TypeError',
      message: 'read ECONNRESET',
      code: 'ECONNRESET',
      stack: error.stack,
    })
    expect(Object.keys(plain)).toEqual(['code'])
    expect('cause' in plain).toBe(false)
  })

  it('has no code that is no text', () => {
    expect('code' in withoutArguments(Object.assign(new Error('a'), { code: { args: ['secret'] } }))).toBe(false)
  })

  it.each([
    ["ERR unknown command 'A', with args beginning with: 'ada' 'b'", "ERR unknown command 'A'"],
    ["ERR unknown command 'A' with args beginning with: 'ada'\n'b'", "ERR unknown command 'A'"],
  ])('has no arguments that Redis repeats', (message, expected) => {
    const plain = withoutArguments(new Error(message))
    expect(plain.message).toBe(expected)
    expect(plain.stack).not.toContain('ada')
  })

  it('is one without arguments all the way down', () => {
    const inner = Object.assign(new Error('ERR no, with args beginning with: ada'), { args: ['ada'] })
    const { cause } = withoutArguments(new Error('outer', { cause: inner }))
    expect(cause).toMatchObject({ message: 'ERR no' })
    expect(Object.keys(cause as Error)).toEqual([])
  })

  it('keeps an error whose stack is gone without one of its own', () => {
    const error = new Error('a')
    Object.defineProperty(error, 'stack', { value: undefined })
    expect(withoutArguments(error).stack).toMatch(/^Error: a\n/)
  })

  it('can be renamed by who gets it', () => {
    const plain = withoutArguments(new TypeError('a'))
    expect(Object.assign(plain, { name: 'Mine' }).name).toBe('Mine')
    expect(Reflect.deleteProperty(plain, 'name')).toBe(true)
  })

  it('tells the type of what was no error, and not the value', () => {
    expect(withoutArguments('secret').message).toBe('rejected with string')
    expect(withoutArguments(undefined).message).toBe('rejected with undefined')
  })
})
