// What is wrong with a command line is said before anything is opened, and without what may be a secret.
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { parseArguments } from '../../command/arguments.ts'
import { COMMANDS } from '../../command/commands.ts'
import { UsageError } from '../../command/exit.ts'
import { helpOf } from '../../command/help.ts'
import { messageOf, plain, safeMessageOf } from '../../command/messages.ts'
import { Output, row } from '../../command/output.ts'
import { Progress } from '../../command/progress.ts'
import { parseStoreUrl, schemeOf } from '../../command/store-url.ts'

const KEY = `abc${'x'.repeat(43)}`

/** The message of the refusal. */
function refusal(work: () => unknown): string {
  try {
    work()
  } catch (error) {
    expect(error).toBeInstanceOf(UsageError)
    return (error as Error).message
  }
  throw new Error('it was accepted')
}
const wrong = (...argv: string[]) => refusal(() => parseArguments(argv))

describe('a command line', () => {
  it.each([
    [[], /^expected a command: schema, migrate, /],
    [['lst', '42'], 'there is no command lst: did you mean list?'],
    [['end_user', '42'], 'there is no command end_user: did you mean invalidate-user?'],
    [['frobnicate'], /^there is no command frobnicate: expected schema, migrate/],
    [['sweep', '--jsno'], 'there is no option --jsno: did you mean --json?'],
    [['sweep', '-x'], 'there is no option -x'],
    [['sweep', 'now'], 'there is one word too many now: coatcheck sweep'],
    [['revoke'], 'USER is missing: coatcheck revoke USER KEY'],
    [['revoke', '42'], 'KEY is missing: coatcheck revoke USER KEY'],
    [['sweep', '--store'], '--store needs a value: --store URL'],
    [['sweep', '--store', '--json'], '--store needs a value: --store URL'],
    [['sweep', '--store='], '--store needs a value: --store URL'],
    [['sweep', '--json=yes'], '--json takes no value'],
    [['sweep', '--table', 'a', '--table', 'b'], '--table is given twice'],
    [['sweep', '--min-password-version', '3'], 'sweep takes no --min-password-version'],
    [['schema', '--namespace', 'acme'], 'schema takes no --namespace'],
    [['invalidate-user', '42', '--user-ids', 'uuid'], /^--user-ids: expected u64, number or text/],
  ])('%j is refused: %s', (argv, message) => {
    const said = wrong(...argv)
    if (typeof message === 'string') expect(said).toBe(message)
    else expect(said).toMatch(message)
  })

  it.each(['', '-1', '042', '1e3', ' 42', '0x2a', '18446744073709551616', 'ada', '4 2'])(
    'takes no %j for the ID of a user where IDs are numbers',
    user => {
      expect(wrong('invalidate-user', '--', user)).toMatch(
        /^USER: expected a whole number from 0 to 18446744073709551615/,
      )
    },
  )

  it('takes user IDs as the application has them', () => {
    const userOf = (...argv: string[]) => (parseArguments(argv) as { user: string }).user
    expect(userOf('invalidate-user', '18446744073709551615')).toBe('18446744073709551615')
    expect(userOf('invalidate-user', '0')).toBe('0')
    expect(userOf('invalidate-user', 'ada', '--user-ids', 'string')).toBe('ada')
    expect(userOf('invalidate-user', '--user-ids=text', '--', '-ada')).toBe('-ada')
    expect(wrong('invalidate-user', '9007199254740993', '--user-ids', 'number')).toMatch(/from 0 to 9007199254740991/)
    expect(wrong('invalidate-user', 'a\tb', '--user-ids', 'string')).toMatch(/without control characters/)
  })

  it('takes a key that begins with a dash, which one in 64 does', () => {
    for (const key of [KEY, `-${KEY.slice(1)}`, `--${KEY.slice(2)}`])
      expect(parseArguments(['revoke', '42', key])).toMatchObject({ do: 'run', user: '42', key })
  })

  it('says that a session ID is no key, and does not repeat it', () => {
    const id = 'S'.repeat(43)
    const said = wrong('revoke', '42', id)
    expect(said).toMatch(/^KEY: expected a key of 46 characters.*a session ID has 43/)
    expect(said).not.toContain(id)
  })

  it('never repeats a URL or a session ID, wherever it stands', () => {
    const secrets = [
      'redis://:hunter2@db',
      'hunter2-hunter2-hunter2-hunter2-hunter2-xyz',
      'hunter2:x@db',
      `hunter2${KEY.slice(7)}`,
    ]
    for (const secret of secrets)
      for (const argv of [
        [secret],
        [secret, 'list'],
        ['list', secret],
        ['sweep', secret],
        [`--${secret}`],
        ['sweep', `--stroe=${secret}`],
        ['sweep', '--user-ids', secret],
        ['sweep', '--timeout', secret],
        ['revoke', secret, secret],
        ['revoke', '42', secret, secret],
      ]) {
        let said = ''
        try {
          parseArguments(argv)
        } catch (error) {
          said = (error as Error).message
        }
        expect(said).not.toContain('hunter2')
      }
  })

  it('shows help for all and for each command, with every option that it takes', () => {
    expect(parseArguments(['--help'])).toEqual({ do: 'help', command: null })
    expect(parseArguments(['help'])).toEqual({ do: 'help', command: null })
    expect(parseArguments(['-h', 'list'])).toMatchObject({ do: 'help', command: { name: 'list' } })
    expect(parseArguments(['help', 'list'])).toMatchObject({ do: 'help', command: { name: 'list' } })
    for (const command of COMMANDS.values()) {
      expect(helpOf(null)).toContain(`  ${command.name}`)
      for (const option of command.options) expect(helpOf(command)).toContain(`--${option}`)
    }
  })
})

describe('a store URL', () => {
  const parse = (url: string, schema?: string) => parseStoreUrl(url, '--store', { ...(schema && { schema }) })

  it.each([
    ['redis://db', 'redis', 'Redis at db'],
    ['REDISS://ada:p%40ss@db:6380/3', 'redis', 'Redis at db:6380, database 3'],
    ['redis+cluster://:pw@a:1,[::1]:2,c', 'redis-cluster', 'Redis Cluster at a:1,[::1]:2,c'],
    ['postgres://ada@[::1]:5432/app', 'postgres', 'PostgreSQL at [::1]:5432, database app'],
    ['postgresql:///app?host=/run', 'postgres', 'PostgreSQL at its socket, database app'],
    ['postgres:', 'postgres', 'PostgreSQL, as the environment says (PGHOST and others)'],
    ['mysql://ada:pw@db/app', 'mysql', 'MySQL at db, database app'],
    ['mariadb://db/app', 'mysql', 'MariaDB at db, database app'],
    ['sqlite:data/a%20b.db', 'sqlite', 'SQLite in data/a b.db'],
    ['sqlite:///var/a.db', 'sqlite', 'SQLite in /var/a.db'],
  ])('%s is read', (url, kind, name) => {
    expect(parse(url)).toMatchObject({ kind, name })
  })

  it('has a scheme that every driver knows, and the nodes and credentials of a cluster', () => {
    expect(parse('mariadb://ada:pw@db/app').url).toBe('mysql://ada:pw@db/app')
    expect(parse('redis+cluster://ada:p%3Aw@a:1,[::1]:2,c')).toMatchObject({
      username: 'ada',
      password: 'p:w',
      tls: false,
      nodes: [
        { host: 'a', port: 1 },
        { host: '::1', port: 2 },
        { host: 'c', port: 6379 },
      ],
    })
    expect(parse('rediss+cluster://a').tls).toBe(true)
    expect(parse('mysql://db', 'app').name).toBe('MySQL at db')
  })

  it.each([
    ['', /this is no URL of a store: expected redis:/],
    ['localhost:6379', /this is no URL of a store/],
    ['mongodb://db', /mongodb:\/\/ is no store: expected redis:/],
    ['__proto__://db', /expected redis:/],
    ['memory:', /inside the application's own process/],
    ['redis:db', /expected redis:\/\/HOST:PORT/],
    ['redis://', /the host is missing/],
    ['redis://:6379', /the host is missing/],
    ['redis://:hunter2@', /the host is missing/],
    ['redis://db:0', /the port is no number from 1 to 65535/],
    ['redis://db:99999', /the port is no number/],
    ['redis://db:port', /the port is no number/],
    ['redis://db/app', /the database of Redis is a number/],
    ['redis+cluster://a:1,', /the host is missing/],
    ['redis+cluster://a:1/2', /a cluster has no databases/],
    ['redis://:hunter2%@db', /the password cannot be read: a % that begins no escape is written %25/],
    ['postgres://ada:hunter2/x@db/app', /the port is no number.* are written %25 %40/],
    ['postgres://ada:hunter2#x@db/app', /a # has no meaning/],
    ['mysql://ada:hunter2@db', /the database is missing: expected mysql:/],
    ['mysql://ada:hunter2@db/', /the database is missing/],
    ['sqlite:', /the file is missing: expected sqlite:FILE/],
    ['sqlite::memory:', /expected the file of the application/],
    ['sqlite://host', /a host has no meaning here/],
    ['sqlite:100%.db', /the file cannot be read/],
  ])('%s is refused', (url, message) => {
    const said = refusal(() => parse(url))
    expect(said).toMatch(message)
    expect(said).not.toContain('hunter2')
  })

  it('gives its password to no message, whatever the password and wherever the URL is wrong', () => {
    const word = fc.string({ minLength: 6, unit: fc.constantFrom(...'abXY01@:/?#%+ &=é\u001b') })
    fc.assert(
      fc.property(
        word,
        fc.constantFrom('redis', 'redis+cluster', 'postgres', 'mysql', 'sqlite', 'mongodb', ''),
        fc.constantFrom('@db:5432/x', '@db:99999/x', '@', '', '@db/%', '@db/x#y', '/x'),
        fc.boolean(),
        (password, scheme, rest, encodes) => {
          const secret = `Q7${password}Q7`
          const url = `${scheme}://ada:${encodes ? encodeURIComponent(secret) : secret}${rest}`
          let said = ''
          try {
            said = scheme === 'sqlite' ? '' : parse(url).name
          } catch (error) {
            said = (error as Error).message
          }
          // An @ that is not encoded ends the password: what follows the last one is the host.
          if (encodes || !/[@/?#]/.test(secret)) expect(said).not.toContain('Q7')
        },
      ),
    )
  })

  it('of schema needs its scheme alone', () => {
    expect(schemeOf('postgres:', '--store').kind).toBe('postgres')
    expect(schemeOf('sqlite:', '--store').kind).toBe('sqlite')
    expect(refusal(() => schemeOf('pg', '--store'))).toMatch(/this is no URL/)
  })
})

describe('what the command prints', () => {
  it('leaves out what a driver says where it contains the password', () => {
    const error = Object.assign(new Error('cannot read redis://:hunter2@db'), { code: 'ERR_INVALID_URL' })
    expect(safeMessageOf(error, ['hunter2'])).toBe(
      'ERR_INVALID_URL (what the driver says is not shown: it contains the password)',
    )
    expect(safeMessageOf(new Error('a', { cause: error }), ['hunter2'])).not.toContain('hunter2')
    expect(safeMessageOf(Object.assign(new Error('hunter2'), { code: 'HUNTER2' }), ['hunter2', 'HUNTER2'])).not.toMatch(
      /hunter2/i,
    )
    expect(safeMessageOf(new Error('connect ECONNREFUSED'), ['hunter2'])).toBe('connect ECONNREFUSED')
  })

  it('says what each cause adds, and why each address of a host failed', () => {
    const cause = new AggregateError([new Error('connect ECONNREFUSED ::1:1')], '')
    expect(messageOf(new Error('the store failed', { cause }))).toBe('the store failed: connect ECONNREFUSED ::1:1')
    expect(messageOf(new Error('a\n  b'))).toBe('a b')
    expect(messageOf(undefined)).toBe('undefined')
  })

  const collected = (json: boolean) => {
    let written = ''
    const stream = {
      isTTY: true,
      on: () => stream,
      write(text: string, done?: unknown) {
        written += text
        if (typeof done === 'function') done()
        return true
      },
    } as unknown as NodeJS.WriteStream
    return { output: new Output(stream, stream, json), stream, written: () => written }
  }

  it('steers no terminal, whatever a user calls himself', async () => {
    const name = 'x\u001b]0;owned\u0007\u009b2J\u202e\u{e0041}\r\ny'
    expect(plain(name)).toBe('x\\u001b]0;owned\\u0007\\u009b2J\\u202e\\u{e0041}\\u000d\\u000ay')
    expect(row(['a', name], [3])).toMatch(/^a {4}x\\u001b/)
    const { output, written } = collected(true)
    await output.result('', { name })
    expect(written().trimEnd()).not.toMatch(/[\p{Cc}\p{Cf}]/u)
    expect(JSON.parse(written())).toEqual({ name })
  })

  it('shows progress on a terminal alone, now and then, and takes it away', () => {
    const { stream, written } = collected(false)
    let now = 1000
    const progress = new Progress(stream, { now: () => now })
    progress.show('1 session')
    progress.show('2 sessions')
    now += 200
    progress.show('3 sessions')
    progress.clear()
    progress.clear()
    expect(written()).toBe('\r\u001b[K1 session\r\u001b[K3 sessions\r\u001b[K')
    const silent = collected(false)
    new Progress(silent.stream, { json: true }).show('1 session')
    new Progress({ ...silent.stream, isTTY: false } as NodeJS.WriteStream).show('1 session')
    expect(silent.written()).toBe('')
  })
})
