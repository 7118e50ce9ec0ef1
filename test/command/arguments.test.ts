// What is wrong with a command line is said before anything is opened, and without what may be a secret.
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { COMMAND_NAMES, HELP, OPTION_NAMES, parseArguments, usageOf } from '../../src/command/arguments.ts'
import { messageOf, plain, safeMessageOf, UsageError } from '../../src/command/errors.ts'
import { kindIn, parseStoreUrl } from '../../src/command/store-url.ts'

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
    [[], /^expected a command of ddl, migrate, .*; a store is named by --store URL$/],
    [['lst', '42'], /^there is no command lst: expected one of ddl, migrate/],
    [['end-user', '42'], /^there is no command end-user: expected one of .*, invalidate-user, /],
    [['sweep', '--jsno'], /^there is no option --jsno: expected --store, --table, /],
    [['sweep', '-x'], /^there is no option -x: /],
    [['sweep', 'now'], 'there is one word too many now: coatcheck sweep'],
    [['doctor', 'redis://a', '--store', 'redis://b'], 'there is one word too many: coatcheck doctor [URL]'],
    [['revoke'], 'USER is missing: coatcheck revoke USER KEY'],
    [['revoke', '42'], 'KEY is missing: coatcheck revoke USER KEY'],
    [['sweep', '--store'], '--store needs a value: --store URL'],
    [['sweep', '--store', '--json'], '--store needs a value: --store URL'],
    [['sweep', '--store='], '--store needs a value: --store URL'],
    [['sweep', '--json=yes'], '--json takes no value'],
    [['sweep', '--table', 'a', '--table', 'b'], '--table is given twice'],
    [['sweep', '--min-password-version', '3'], 'sweep takes no --min-password-version'],
    [['ddl', '--namespace', 'acme'], 'ddl takes no --namespace'],
  ])('%j is refused: %s', (argv, message) => {
    const said = wrong(...argv)
    if (typeof message === 'string') expect(said).toBe(message)
    else expect(said).toMatch(message)
  })

  it('takes what is exactly at a limit', () => {
    const given = ['--min-password-version', '4294967295', '--timeout', '1h']
    const { minPasswordVersion, timeout } = parseArguments(['invalidate-user', '42', ...given]) as any
    expect([minPasswordVersion, timeout]).toEqual([0xffff_ffff, 3_600_000])
  })

  it('takes user IDs as text, in which every kind is exact', () => {
    for (const user of ['18446744073709551615', '0', 'ada', '0190b2c4-0000-7000-8000-000000000000'])
      expect(parseArguments(['invalidate-user', user])).toMatchObject({ command: 'invalidate-user', user })
    expect(parseArguments(['invalidate-user', '--json', '--', '-ada'])).toMatchObject({ user: '-ada' })
    expect(parseArguments(['list', '😀'.repeat(64)])).toMatchObject({ user: '😀'.repeat(64) })
    for (const user of ['', 'a\tb', 'x'.repeat(129), '😀'.repeat(65)])
      expect(wrong('invalidate-user', '--', user)).toMatch(
        /^USER: expected text of 1 to 128 characters without control/,
      )
  })

  it('takes a key that begins with a dash, which one in 64 does', () => {
    for (const key of [KEY, `-${KEY.slice(1)}`, `--${KEY.slice(2)}`])
      expect(parseArguments(['revoke', '42', key])).toMatchObject({ command: 'revoke', user: '42', key })
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
        ['sweep', '--prefix', secret],
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

  it('shows one help, with every command and every option', () => {
    for (const argv of [
      ['--help'],
      ['help'],
      ['-h', 'list'],
      ['help', 'list'],
      ['list', '--help'],
      ['--help', 'nothing'],
    ])
      expect(parseArguments(argv)).toBe('help')
    for (const name of COMMAND_NAMES) expect(HELP).toContain(`  ${usageOf(name)}  `)
    for (const option of OPTION_NAMES) expect(HELP).toContain(`--${option}`)
    expect(parseArguments(['--version'])).toBe('version')
  })
})

describe('a store URL', () => {
  const parse = (url: string, schema?: string) => parseStoreUrl(url, '--store', { ...(schema && { schema }) })

  it.each([
    ['redis://db', 'redis', 'Redis at db'],
    ['REDISS://ada:p%40ss@db:6380/3', 'redis', 'Redis at db'],
    ['redis+cluster://:pw@a:1,[::1]:2,c', 'redis-cluster', 'Redis Cluster at a,::1,c'],
    ['postgres://ada@[::1]:5432/app', 'postgres', 'PostgreSQL at ::1'],
    ['postgresql:///app?host=/run', 'postgres', 'PostgreSQL at its socket'],
    ['postgres:', 'postgres', 'PostgreSQL, as the environment says (PGHOST and others)'],
    ['mysql://ada:pw@db/app', 'mysql', 'MySQL at db'],
    ['mariadb://db/app', 'mysql', 'MariaDB at db'],
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
    // No output contains one, as it is written or as it is meant.
    expect(parse('redis://:p%40ss@db').secrets).toEqual(expect.arrayContaining(['p%40ss', 'p@ss']))
    expect(parse('mysql://db', 'app').name).toBe('MySQL at db')
  })

  it.each([
    ['', /this is no URL of a store: expected redis:/],
    ['localhost:6379', /this is no URL of a store/],
    ['mongodb://db', /this is no URL of a store: expected redis:/],
    ['hunter2:x@db', /this is no URL of a store/],
    ['hunter2://x@db', /this is no URL of a store/],
    ['__proto__://db', /expected redis:/],
    ['memory:', /inside the application's own process/],
    ['redis:db', /no host with a port.*expected redis:\/\/HOST:PORT/],
    ['redis://', /no host/],
    ['redis://:6379', /no host/],
    ['redis://:hunter2@', /no host/],
    ['redis://db:0', /no host with a port from 1 to 65535/],
    ['redis://db:99999', /no host with a port/],
    ['redis://db:port', /no host with a port/],
    ['postgres://a:1,b:2/x', /no host with a port/],
    ['redis://db/app', /the database of Redis is a number/],
    ['redis+cluster://a:1,', /no host/],
    ['redis+cluster://a:1,[', /no host/],
    ['redis+cluster://[]:1', /no host/],
    ['redis+cluster://a:1/2', /a cluster has no databases/],
    ['redis://:hunter2%@db', /it cannot be read; in a user name or password % @/],
    ['mysql://ada:hunter2@db', /the database is missing: expected mysql:/],
    ['mysql://ada:hunter2@db/', /the database is missing/],
    ['sqlite:', /no file of an application: expected sqlite:FILE/],
    ['sqlite:app.db?key=hunter2', /: a file has no parameters: expected sqlite:FILE$/],
    ['sqlite::memory:', /no file of an application/],
    ['sqlite://host', /no file of an application/],
    ['sqlite:100%.db', /the file cannot be read/],
  ])('%s is refused', (url, message) => {
    const said = refusal(() => parse(url))
    expect(said).toMatch(message)
    expect(said).not.toContain('hunter2')
  })

  // A / in a password ends the host, so that "app" were the host, "2024" its port, and the rest a database to be printed.
  it.each([
    'postgres://app:2024/s3cret@db/x',
    'postgres://app:2024?s3cret@db/x',
    'postgres://app:2024#s3cret@db/x',
    'postgres://app:s3cret/2024@db/x',
    'postgres://app:s3cret/x',
    'mysql://app:2024/s3/cret@db/x',
    'redis://app:2024/s3cret@db',
    'redis+cluster://app:2024/s3cret@a:1,b:2',
    'redis+cluster://a:1,app:2024/s3cret@b:2',
  ])('%s, whose password is not encoded, is refused and not repeated', url => {
    const said = refusal(() => parse(url))
    expect(said).toMatch(/in a user name or password % @ : \/ \? # are written %25 %40/)
    expect(said).not.toMatch(/s3|cret|2024|app/)
  })

  // Its writer has forgotten the host, and what a / follows in the password is taken for a port and a database.
  it.each([
    ['postgres://app:2024/s3cret', 'PostgreSQL at app'],
    ['mysql://app:2024/s3cret', 'MySQL at app'],
    ['redis://app:2024/31', 'Redis at app'],
  ])('%s, which may be a user and a password, is told as its host alone', (url, name) => {
    expect(parse(url).name).toBe(name)
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
          if (encodes || !/@/.test(secret)) expect(said).not.toContain('Q7')
        },
      ),
    )
  })

  it('of ddl needs its scheme alone', () => {
    expect(kindIn('postgres:', '--store')).toBe('postgres')
    expect(kindIn('sqlite:', '--store')).toBe('sqlite')
    expect(refusal(() => kindIn('pg', '--store'))).toMatch(/this is no URL/)
  })
})

describe('what the command prints', () => {
  it("leaves out a driver's message that contains the password", () => {
    const error = Object.assign(new Error('cannot read redis://:hunter2@db'), { code: 'ERR_INVALID_URL' })
    expect(safeMessageOf(error, ['hunter2'])).toBe(
      "ERR_INVALID_URL (the driver's message is not shown: it contains the password)",
    )
    expect(safeMessageOf(new Error('a', { cause: error }), ['hunter2'])).not.toContain('hunter2')
    expect(safeMessageOf(Object.assign(new Error('hunter2'), { code: 'HUNTER2' }), ['hunter2', 'HUNTER2'])).not.toMatch(
      /hunter2/i,
    )
    expect(safeMessageOf(new Error('connect ECONNREFUSED'), ['hunter2'])).toBe('connect ECONNREFUSED')
    expect(safeMessageOf(new Error('no: hunter\u0007'), ['hunter\u0007']), 'as a terminal shows it').not.toContain(
      'hunter',
    )
  })

  it('says what each cause adds, and why each address of a host failed', () => {
    const cause = new AggregateError([new Error('connect ECONNREFUSED ::1:1')], '')
    expect(messageOf(new Error('the store failed', { cause }))).toBe('the store failed: connect ECONNREFUSED ::1:1')
    expect(messageOf(new Error('a\n  b'))).toBe('a b')
    expect(messageOf(undefined)).toBe('undefined')
  })

  it('steers no terminal, whatever a user calls himself', () => {
    const name = 'x\u001b]0;owned\u0007\u009b2J\u202e\u{e0041}\r\ny'
    expect(plain(name)).toBe('x\\u001b]0;owned\\u0007\\u009b2J\\u202e\\udb40\\udc41\\u000d\\u000ay')
  })
})
