// What the pages show is compiled and run: every block of TypeScript and JavaScript, and every transcript of curl.
import { execFile, execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { cheapPasswords } from '../../support/example-service.ts'
import { filesOf, guidesInStart, type Module, modulesOf, problemsOf, runnable, START } from '../../support/page-code.ts'
import { BLOCKS, type Block, blocksOf, PAGES, prose, read, root, table } from '../../support/pages.ts'
import { build } from '../../support/scripts/build.mjs'
import { describeEngine } from '../../support/services/engines.ts'
import { startMariadb } from '../../support/services/mariadb.ts'
import { startPostgres } from '../../support/services/postgres.ts'
import { freePort, type Running, start, until } from '../../support/services/process.ts'
import { startRedis } from '../../support/services/redis.ts'
import { started } from '../../support/started.ts'
import { EXAMPLES, WRITTEN } from './docstrings.ts'

const run = promisify(execFile)
const MODULES = PAGES.flatMap(modulesOf)
/** In the order of their index. */
const GUIDES = [...prose('docs/guide.md').matchAll(/\]\((guide\/[\w-]+\.md)\)/g)].map(([, path]) => `docs/${path}`)

/** Which servers a block talks to. */
function serversOf({ code, markers }: Module): keyof typeof SERVERS {
  if (/from '(?:redis|ioredis)'/.test(code) || / engine redis$/.test(markers.get('run') ?? '')) return 'redis'
  if (/from 'pg'/.test(code) || / engine postgres$/.test(markers.get('run') ?? '')) return 'postgresql'
  if (/from 'mysql2(?:\/promise)?'/.test(code) || / engine mysql$/.test(markers.get('run') ?? '')) return 'mariadb'
  return 'memory'
}

// Inside the project, where `coatcheck` is the package itself, and beside other frameworks.
let folder: string
beforeAll(async () => {
  await build()
  mkdirSync(join(root, '.tmp'), { recursive: true })
  folder = mkdtempSync(join(root, '.tmp/docs-'))
  symlinkSync(join(root, 'test/libraries/node_modules'), join(folder, 'node_modules'))
}, 240_000)
afterAll(() => folder && rmSync(folder, { recursive: true, force: true }))

/** A folder for one page: a block finds there what the page saved before. */
const folderOf = (page: string) => {
  const path = join(folder, page.replaceAll(/\W/g, '-'))
  mkdirSync(path, { recursive: true })
  return path
}

// Inside a test runner node --test would report to it instead, and what a block prints is compared: no colours.
const { NODE_TEST_CONTEXT: _, FORCE_COLOR: __, ...environment } = process.env

/** Runs a module of a page; what it prints. */
async function execute(module: Module, env: Record<string, string> = {}, replaced = (code: string) => code) {
  const cwd = folderOf(module.page)
  for (const [name, code] of filesOf(module.page)) writeFileSync(join(cwd, name), runnable(code))
  const command = module.markers.get('run')?.split(',')[0]
  const isTest = command === 'node --test'
  const name = `${module.place.replace(/.*:/, 'line-')}${isTest ? '.test' : ''}.mjs`
  // A program ends by itself; what the other blocks leave open ends with them.
  const end = command === undefined ? '\nprocess.exit()\n' : ''
  writeFileSync(join(cwd, name), replaced(runnable(module.code)) + end)
  const args = isTest ? ['--test', '--test-reporter=tap', name] : [name]
  const options = { cwd, env: { ...environment, ...env }, maxBuffer: 2 ** 26, timeout: 60_000 }
  return (await run(process.execPath, args, options)).stdout
}

/** `console.log(…) // what it prints`: the lines that a block promises. */
const promised = (code: string) => [...code.matchAll(/^console\.log\(.*\) \/\/ (.+)$/gm)].map(match => match[1]!)

async function check(module: Module, env?: Record<string, string>, replaced?: (code: string) => string) {
  const printed = await execute(module, env, replaced)
  if (module.markers.get('run') === 'node --test') {
    expect(printed).toMatch(/^# fail 0$/m)
    expect(Number(/^# pass (\d+)$/m.exec(printed)?.[1])).toBeGreaterThanOrEqual(
      module.code.includes('testStore(') ? 60 : 1,
    )
    return
  }
  let from = 0
  const lines = printed.split('\n')
  for (const line of promised(module.code)) {
    // A comment may go on after what is printed: `// null: idle for half an hour`.
    const at = lines.findIndex(
      (shown, index) => index >= from && (line === shown || (shown !== '' && line.startsWith(`${shown}: `))),
    )
    expect(at, `${module.place} prints "${line}" in\n${printed}`).toBeGreaterThanOrEqual(from)
    from = at + 1
  }
}

describe('the code of the pages', () => {
  it('uses no marker that no test knows', () => {
    const known =
      'file, tried by, continues, save, beside, run, compile only, not run, program, curl, server, initial, from, tab'
    for (const { place, markers } of BLOCKS)
      for (const name of markers.keys()) expect(known.split(', '), place).toContain(name)
  })

  it.each([
    ['Pasted into Start', true],
    ['Beside Start', false],
  ])('of the guides is listed by whether it goes into Start: %s', (heading, isPasted) => {
    for (const [, link] of table('docs/guide.md', heading)) {
      const page = `docs/${/\]\((.+)\)$/.exec(link!)?.[1]}`
      // Remember-me speaks to Start as it is.
      const speaks = blocksOf(page).some(({ markers }) => markers.has('program') || markers.get('curl') === 'start')
      expect(speaks, page).toBe(isPasted)
    }
  })

  it('compiles, also with all guides pasted into Start, and so do the examples of the docstrings', () => {
    const compiled = MODULES.filter(({ markers }) => !['not run', 'file', 'from'].some(marker => markers.has(marker)))
    expect([compiled.length > 50, GUIDES.length > 10, EXAMPLES.length > 9]).toEqual([true, true, true])
    expect(EXAMPLES.length).toBe(WRITTEN)
    const [start] = modulesOf(START) as [Module]
    const all: Module = { ...start, place: 'Start with its guides', code: guidesInStart(GUIDES) }
    expect(problemsOf([...compiled, all, ...EXAMPLES])).toEqual([])
  }, 180_000)

  it.each(BLOCKS.filter(({ markers }) => markers.has('file')).map(block => [block.place, block] as const))(
    'of %s is the file that it names',
    (_, { code, markers }) => {
      expect(code).toBe(read(markers.get('file')!))
    },
  )

  it.each(BLOCKS.filter(({ markers }) => markers.has('from')).map(block => [block.place, block] as const))(
    'of %s stands in the file that it names, between its lines of …',
    (_, { code, markers }) => {
      const parts = code.split(/\n*^ *\/\/ …\n+/m).map(part => part.trimEnd())
      for (const part of parts) expect(read(markers.get('from')!)).toContain(part)
    },
  )

  it('leads to each recipe of examples/', () => {
    const list = ['-c', 'safe.directory=*', 'ls-files', '-co', '--exclude-standard', 'examples/*/package.json']
    const recipes = execFileSync('git', list, { cwd: root, encoding: 'utf8' }).trim().split('\n')
    expect(recipes).toContain('examples/express/package.json')
    const pages = PAGES.map(read).join('')
    for (const recipe of recipes) expect(pages).toContain(`../${recipe.replace('/package.json', '')}`)
  })
})

const RUN = MODULES.filter(
  ({ markers }) => !['file', 'from', 'compile only', 'not run', 'program', 'save'].some(marker => markers.has(marker)),
)
const SERVERS = {
  memory: async () => ({ env: {}, replaced: (code: string) => code, stop: async () => {} }),
  redis: async () => {
    const server = await startRedis()
    return {
      env: { REDIS_URL: server.url },
      // The client of Valkey takes no URL.
      replaced: (code: string) =>
        code
          .replaceAll(/rediss?:\/\/[^'"`]+/g, server.url)
          .replaceAll("host: 'localhost', port: 6379", `host: '127.0.0.1', port: ${server.port}`),
      stop: () => server.stop(),
    }
  },
  postgresql: async () => {
    const server = await startPostgres()
    return {
      env: { DATABASE_URL: server.url() } as Record<string, string>,
      replaced: (code: string) => code.replaceAll(/postgres(?:ql)?:\/\/[^'"`]+/g, server.url()),
      clean: () =>
        server.pool().query('DROP TABLE IF EXISTS users, identities, coatcheck_sessions, coatcheck_sessions_users'),
      stop: () => server.stop(),
    }
  },
  mariadb: async () => {
    const server = await startMariadb()
    const pool = server.pool()
    await pool.query('CREATE DATABASE IF NOT EXISTS test')
    return {
      env: { DATABASE_URL: server.url() },
      replaced: (code: string) => code.replaceAll(/mysql:\/\/[^'"`]+/g, server.url()),
      stop: () => server.stop(),
    }
  },
}

for (const servers of ['memory', 'redis', 'postgresql', 'mariadb'] as const) {
  const modules = RUN.filter(module => serversOf(module) === servers)
  if (modules.length > 0)
    describeEngine(servers, `the code of the pages, on ${servers}`, () => {
      const server = started(() => SERVERS[servers]())

      it.each(modules.map(module => [module.place, module] as const))(
        'runs: %s',
        async (_, module) => {
          const port = await freePort()
          await check(module, { ...server().env, PORT: `${port}` }, code =>
            server()
              .replaced(code)
              .replaceAll(/\b3000\b/g, `${port}`),
          )
        },
        90_000,
      )
    })
}

/** What differs from run to run, and only that. */
const steady = (text: string) =>
  text
    .replaceAll('\r', '')
    .replaceAll(/(session_id|remember_token|session_bound)=[A-Za-z0-9_.-]{43,}(?=;)/g, '$1=ID')
    // What is left of a lifetime: the login may be seconds ago.
    .replaceAll(/(?<=; Max-Age=)\d+/g, seconds => `${Math.ceil(Number(seconds) / 60) * 60}`)
    .replaceAll(/^Date: \w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d GMT$/gm, 'Date: NOW')
    .split('\n')
    .filter(Boolean)

/** What curl printed, without what the page leaves out: the status and headers, but never a Set-Cookie. */
function asShown(got: string[], shown: string[]): string[] {
  const isHead = (line: string) => /^(?:HTTP\/1\.1 \d+|[A-Z][\w-]*:) /i.test(line)
  const nameOf = (line: string) => line.split(/[: ]/)[0]!.toLowerCase()
  const head = new Set(['set-cookie', ...shown.filter(isHead).map(nameOf)])
  return got.filter(line => !isHead(line) || head.has(nameOf(line)))
}

async function expectTranscript(block: Block, port: number, cwd: string) {
  const steps = block.code.split(/^\$ /m).slice(1)
  expect(steps.length, block.place).toBeGreaterThan(0)
  for (const step of steps) {
    const [command, ...lines] = steady(step) as [string, ...string[]]
    expect(command).toMatch(/^curl /)
    const silent = command
      .replace('curl', 'curl -s --noproxy "*"')
      .replace(/(?:localhost|127\.0\.0\.1):3000/, `localhost:${port}`)
    const { stdout } = await run('sh', ['-c', silent], { cwd })
    const got = asShown(steady(stdout), lines)
    // `…` stands for lines that may differ.
    const parts = lines.join('\n').split(/^…$/m)
    if (parts.length === 1) expect(`$ ${command}\n${got.join('\n')}`).toBe(`$ ${command}\n${lines.join('\n')}`)
    else for (const part of parts) expect(got.join('\n'), command).toContain(part.trim())
  }
}

const TRANSCRIPTS = BLOCKS.filter(({ language, code }) => language === 'console' && /^\$ curl /m.test(code))
/** Those that talk to one server, in order, with one folder for the jar: all of a page with one program. */
const TALKS = new Map<string, Block[]>()
for (const block of TRANSCRIPTS) {
  const program = block.markers.get('curl')
  const talk = program === undefined ? block.place : `${block.page}, ${program}`
  TALKS.set(talk, [...(TALKS.get(talk) ?? []), block])
}

/** A guide that adds no code speaks to the program of Start. */
const programOf = ({ page, markers }: Block) =>
  modulesOf(markers.get('curl') === 'start' ? START : page).find(
    module => module.markers.get('program') === markers.get('curl'),
  )
const talkOf = (page: string) => blocksOf(page).filter(({ markers }) => markers.has('curl'))

for (const servers of ['memory', 'postgresql'] as const) {
  const talks = [...TALKS].filter(([, [block]]) => {
    const program = block!.markers.has('curl') ? programOf(block!) : undefined
    return (program ? serversOf(program) : 'memory') === servers
  })
  describeEngine(servers === 'memory' ? 'curl' : servers, `the transcripts of the pages, on ${servers}`, () => {
    const database = started(() => SERVERS[servers]())

    // A guide speaks to a service that has come as far as the end of Start.
    const told = talks.map(([talk, blocks]): readonly [string, Stage[]] => {
      const isGuide = blocks[0]!.page.startsWith('docs/guide/')
      return [talk, [{ blocks: isGuide ? [...talkOf(START), ...blocks] : blocks, code: programOf(blocks[0]!)?.code }]]
    })
    const pasted = [START, ...GUIDES].map((page, at) => ({
      blocks: talkOf(page),
      code: guidesInStart(GUIDES.slice(0, at)),
    }))
    if (servers === 'postgresql')
      told.push(['Start with one guide after the other', pasted.filter(({ blocks }) => blocks.length > 0)])

    it.each(told)(
      'of %s are what curl prints',
      async (_, stages) => {
        const cwd = mkdtempSync(join(folder, 'curl-'))
        const own = database()
        if ('clean' in own) await (own as Awaited<ReturnType<typeof SERVERS.postgresql>>).clean()
        for (const { blocks, code } of stages) {
          const port = await freePort()
          const env = { ...environment, PORT: `${port}`, STORE_URL: 'memory:', ...own.env }
          const serve = (file: string, folder: string) =>
            start(process.execPath, ['--import', cheapPasswords, file], { cwd: folder, env })
          const { page, place, markers } = blocks.at(-1)!
          const name = markers.get('curl')
          let server: Running
          if (name === undefined) server = serve(markers.get('server') ?? 'examples/server.mjs', root)
          else {
            expect(code, `the program ${name}`).toBeDefined()
            const file = join(folderOf(page), `${name}.mjs`)
            writeFileSync(file, runnable(code!).replaceAll(/\b3000\b/g, `${port}`))
            server = serve(file, folderOf(page))
          }
          try {
            await until(`${place} listens`, () => reach(port), { server })
            for (const block of blocks) await expectTranscript(block, port, cwd)
          } finally {
            await server.stop()
          }
        }
      },
      240_000,
    )
  })
}

/** A program, and what is said to it. */
interface Stage {
  readonly blocks: Block[]
  readonly code: string | undefined
}

const reach = (port: number) =>
  new Promise<void>((resolve, reject) => {
    const socket = connect(port, '127.0.0.1', () => {
      socket.end()
      resolve()
    }).once('error', reject)
  })

describe('the programs of the pages', () => {
  it('each have a transcript that speaks to them', () => {
    for (const { place, page, markers } of MODULES.filter(module => module.markers.has('program')))
      expect(
        TRANSCRIPTS.some(block => block.page === page && block.markers.get('curl') === markers.get('program')),
        place,
      ).toBe(true)
  })
})
