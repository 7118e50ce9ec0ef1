// What the README shows is run, and what it lists is compared with the source.
import { execFile } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { inspect, promisify } from 'node:util'
import { DEFAULTS, presets, SessionError, type SessionErrorCode } from 'coatcheck'
import { MysqlStore, PostgresStore, SqliteStore } from 'coatcheck/stores/sql'
import ts from 'typescript'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { build } from './scripts/build.mjs'
import { describeEngine } from './services/engines.ts'
import { freePort, type Running, start, until } from './services/process.ts'

const run = promisify(execFile)
const root = fileURLToPath(new URL('..', import.meta.url))
const read = (path: string) => readFileSync(join(root, path), 'utf8')
const README = read('README.md')

const blocks = (language: string) =>
  [...README.matchAll(new RegExp(`^\`\`\`${language}\\n(.*?)^\`\`\`$`, 'gms'))].map(match => match[1]!)

/** The first table under a heading, without its head. */
function table(heading: string): string[][] {
  const section = README.split(/^#+ /m).find(text => text.startsWith(`${heading}\n`))
  const lines = (section ?? '').split('\n')
  const first = lines.findIndex(line => line.startsWith('| --- |'))
  expect(first, `a table under "${heading}"`).toBeGreaterThan(0)
  const rows: string[][] = []
  for (const line of lines.slice(first + 1)) {
    if (!line.startsWith('|')) break
    rows.push(
      line
        .split('|')
        .slice(1, -1)
        .map(cell => cell.trim()),
    )
  }
  return rows
}
const plain = (cell: string | undefined) => (cell ?? '').replaceAll('`', '')

/** The members of an interface in the source, with the `@default` of each. */
function members(path: string, name: string): Map<string, string | undefined> {
  const body = new RegExp(`interface ${name}\\b.*?\\{\\n(.*?)^\\}`, 'ms').exec(read(path))?.[1]
  expect(body, `${name} in ${path}`).toBeDefined()
  const found = new Map<string, string | undefined>()
  for (const [, comment, member] of body!.matchAll(/(\/\*\*(?:(?!\*\/).)*\*\/)?\s*^ {2}(\w+)\??:/gms))
    found.set(member!, /@default ([^\n*]+)/.exec(comment ?? '')?.[1]?.trim())
  return found
}

describe('the program of the README', () => {
  it('is the example that the tests run', () => {
    expect(README).toContain(`<!-- file: examples/login.mjs -->\n\`\`\`js\n${read('examples/login.mjs')}\`\`\`\n`)
  })
})

describe('the tables of the SQL stores in the README', () => {
  it.each([
    ['PostgresStore', PostgresStore],
    ['MysqlStore', MysqlStore],
    ['SqliteStore', SqliteStore],
  ])('are what %s.schema() prints', (_, store) => {
    const shown = blocks('sql').map(block => block.trim())
    expect(shown).toContain(store.schema().trim())
  })
})

describeEngine('curl', 'the transcript of the README', () => {
  let server: Running
  let folder: string
  let port: number
  beforeAll(async () => {
    await build()
    port = await freePort()
    folder = mkdtempSync(join(tmpdir(), 'coatcheck-readme-'))
    const env = { ...process.env, PORT: `${port}`, STORE_URL: 'memory:' }
    server = start(process.execPath, ['examples/server.mjs'], { cwd: root, env })
    await until('the service listens', () => expect(server.output()).toContain(`:${port}`))
  }, 240_000)
  afterAll(async () => {
    await server?.stop()
    if (folder) rmSync(folder, { recursive: true, force: true })
  })

  /** What differs from run to run, and only that. */
  const steady = (text: string) =>
    text
      .replaceAll('\r', '')
      .replaceAll(/session_id=[A-Za-z0-9_-]{43}(?=;)/g, 'session_id=ID')
      .replaceAll(/^Date: \w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d GMT$/gm, 'Date: NOW')
      .trim()

  it('is what curl prints', async () => {
    const [transcript] = blocks('console')
    const steps = transcript!.split(/^\$ /m).slice(1)
    expect(steps.length).toBeGreaterThanOrEqual(4)
    expect(transcript).toMatch(
      /Set-Cookie: session_id=[A-Za-z0-9_-]{43}; Max-Age=1800; Path=\/; HttpOnly; Secure; SameSite=Lax/,
    )
    for (const step of steps) {
      const command = step.slice(0, step.indexOf('\n'))
      const shown = step.slice(step.indexOf('\n') + 1)
      expect(command).toMatch(/^curl /)
      const silent = command.replace('curl', 'curl -s --noproxy "*"').replace('localhost:3000', `localhost:${port}`)
      const { stdout } = await run('sh', ['-c', silent], { cwd: folder })
      expect(`$ ${command}\n${steady(stdout)}`).toBe(`$ ${command}\n${steady(shown)}`)
    }
  })
})

describe('the other code of the README', () => {
  const KNOWN: Record<string, string> = {
    IncomingMessage: "import type { IncomingMessage } from 'node:http'",
    ServerResponse: "import type { ServerResponse } from 'node:http'",
    SessionManager: "import { SessionManager } from 'coatcheck'",
    MemoryStore: "import { MemoryStore } from 'coatcheck/stores/memory'",
    sessions: "declare const sessions: import('coatcheck').SessionManager",
    store: "declare const store: import('coatcheck').Store",
    pool: "declare const pool: import('pg').Pool",
    key: 'declare const key: string',
  }

  it('compiles', () => {
    const files = new Map(
      blocks('ts').map((code, index) => {
        const missing = Object.entries(KNOWN)
          .filter(([name]) => new RegExp(`\\b${name}\\b`).test(code))
          .filter(([name]) => !new RegExp(`(?:const|let|import)\\b[^=\\n]*\\b${name}\\b`).test(code))
        const text = [...missing.map(([, declaration]) => declaration), code, 'export {}'].join('\n')
        return [join(root, 'test', `readme-block-${index}.mts`), text] as const
      }),
    )
    expect(files.size).toBeGreaterThan(3)
    const { options } = ts.parseJsonConfigFileContent(JSON.parse(read('tsconfig.json')), ts.sys, root)
    const host = ts.createCompilerHost(options)
    const { fileExists, readFile } = host
    host.fileExists = path => files.has(path) || fileExists.call(host, path)
    host.readFile = path => files.get(path) ?? readFile.call(host, path)
    const program = ts.createProgram([...files.keys()], options, host)
    const problems = [...files.keys()].flatMap(path =>
      ts.getPreEmitDiagnostics(program, program.getSourceFile(path)).map(({ messageText, start = 0 }) => {
        const around = files.get(path)!.slice(start, start + 60)
        return `${ts.flattenDiagnosticMessageText(messageText, '\n')} at ${around}`
      }),
    )
    expect(problems).toEqual([])
  }, 180_000)

  it('runs: the test file of a third party’s store', async () => {
    await build()
    const test = /<!-- run: node --test -->\n```js\n(.*?)```/s.exec(README)?.[1]
    expect(test!.trim().split('\n').length).toBeLessThanOrEqual(15)
    // Inside the project, where `coatcheck` is the package itself.
    mkdirSync(join(root, '.tmp'), { recursive: true })
    const folder = mkdtempSync(join(root, '.tmp/readme-'))
    try {
      writeFileSync(join(folder, 'my-store.test.mjs'), test!)
      writeFileSync(
        join(folder, 'my-store.mjs'),
        "import { MemoryStore } from 'coatcheck/stores/memory'\nexport class MyStore extends MemoryStore {}\n",
      )
      // Inside a test runner node --test would report to it instead.
      const { NODE_TEST_CONTEXT: _, ...env } = process.env
      const { stdout } = await run(process.execPath, ['--test', '--test-reporter=tap', 'my-store.test.mjs'], {
        cwd: folder,
        env,
        maxBuffer: 2 ** 26,
      })
      expect(Number(/^# pass (\d+)$/m.exec(stdout)?.[1])).toBeGreaterThanOrEqual(60)
      expect(stdout).toMatch(/^# fail 0$/m)
    } finally {
      rmSync(folder, { recursive: true })
    }
  }, 240_000)
})

describe('the tables of the README', () => {
  it('list every option of the manager, with its default', () => {
    const rows = table('Options')
    expect(rows.map(([option]) => plain(option))).toEqual([
      ...members('src/manager/options.ts', 'SessionOptions').keys(),
    ])
    for (const [option, shown] of rows) {
      const value = (DEFAULTS as Record<string, unknown>)[plain(option)]
      // Told in words: its default follows idleTimeout.
      if (value !== undefined && option !== '`touchInterval`')
        expect(`${option} ${plain(shown)}`).toBe(`${option} ${inspect(value).replace('_', '')}`)
    }
    const limit = rows.find(([option]) => plain(option) === 'limit')!
    expect(limit[2]).toContain(`is \`'${DEFAULTS.onLimit}'\` or`)
  })

  it('list the presets', () => {
    expect(table('Options').length).toBeGreaterThan(10)
    const shown = [...README.matchAll(/^\| `(\w+)` \| `'(\w+)'` \| `'(\w+)'` \|/gm)].map(match => match.slice(1, 4))
    expect(shown).toEqual(
      Object.entries(presets).map(([name, { idleTimeout, absoluteTimeout }]) => [name, idleTimeout, absoluteTimeout]),
    )
  })

  it('list every option of the edges', () => {
    const options = [...members('src/edge/setup.ts', 'EdgeOptions'), ...members('src/edge/secure.ts', 'SecureOptions')]
    expect(table('Edge options').map(([option]) => plain(option))).toEqual(options.map(([name]) => name))
  })

  it('list every option of the cookie, with its default', () => {
    const options = members('src/edge/cookie.ts', 'CookieOptions')
    expect(table('Cookie options').map(([option, shown]) => [plain(option), plain(shown)])).toEqual([...options])
  })

  it('list every error, with its status', () => {
    const codes = [...read('src/contract/errors.ts').matchAll(/^ {2}\| '(ERR_\w+)'$/gm)].map(match => match[1]!)
    const rows = table('Errors')
    expect(rows.map(([code]) => plain(code)).sort()).toEqual(codes.sort())
    for (const [code, status] of rows)
      expect(new SessionError(plain(code) as SessionErrorCode, '').status).toBe(Number(status))
  })

  it('list every event, with its fields', () => {
    const union = /export type SessionEvent.*?> =\n(.*?)\n\nconst/s.exec(read('src/manager/events.ts'))![1]!
    const expected = [...union.replaceAll(/\/\*\*.*?\*\//gs, '').matchAll(/\{(.*?)\}/gs)].flatMap(([, body]) => {
      const types = [.../type: ((?:'[\w-]+'[ |]*)+)/.exec(body!)![1]!.matchAll(/'([\w-]+)'/g)].map(match => match[1]!)
      const fields = [...body!.matchAll(/(\w+):/g)].map(match => match[1]!).filter(field => field !== 'type')
      return types.map(type => `${type}: ${fields.join(', ')}`)
    })
    const shown = table('Events').map(([type, fields]) => `${plain(type)}: ${plain(fields)}`)
    expect(shown.sort()).toEqual(expected.sort())
  })

  it('name stores that exist under their subpath', async () => {
    const rows = table('Stores')
    expect(rows.length).toBe(5)
    const subpaths: Record<string, () => Promise<object>> = {
      'coatcheck/stores/memory': () => import('coatcheck/stores/memory'),
      'coatcheck/stores/redis': () => import('coatcheck/stores/redis'),
      'coatcheck/stores/sql': () => import('coatcheck/stores/sql'),
    }
    for (const [name, subpath] of rows) expect(Object.keys(await subpaths[plain(subpath)]!())).toContain(plain(name))
  })

  it('have as many cells in each row as in the head', () => {
    let width: number | null = null
    for (const line of README.split('\n')) {
      const cells = line.startsWith('|') ? line.split('|').length : null
      if (cells !== null && width !== null) expect(cells, line).toBe(width)
      width = cells
    }
  })
})

describe('the links', () => {
  const pages = [
    'README.md',
    'CHANGELOG.md',
    ...readdirSync(join(root, '.github'))
      .filter(name => name.endsWith('.md'))
      .map(name => `.github/${name}`),
  ]

  it.each(pages)('of %s lead somewhere', page => {
    const text = read(page)
    const anchors = new Set(
      [...text.matchAll(/^#+ (.+)$/gm)].map(match =>
        match[1]!
          .toLowerCase()
          .replaceAll(/[^\w\- ]/g, '')
          .replaceAll(' ', '-'),
      ),
    )
    for (const [, target] of text.replaceAll(/```.*?```/gs, '').matchAll(/\]\(([^)\s]+)\)/g)) {
      if (/^https:/.test(target!)) continue
      if (target!.startsWith('#')) expect(anchors, target).toContain(target!.slice(1))
      else expect(existsSync(join(root, dirname(page), target!)), `${page}: ${target}`).toBe(true)
    }
  })

  it.each(pages)('and the paths that %s names exist', page => {
    const named = read(page).matchAll(/\b((?:src|stores|test|examples)\/[\w./-]*\w\.(?:ts|mjs))\b/g)
    for (const [, path] of named)
      if (!path!.includes('NAME')) expect(existsSync(join(root, path!)), `${page}: ${path}`).toBe(true)
  })
})
