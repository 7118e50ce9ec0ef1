// Each program that a page or an example shows, asked as an attacker would ask what was copied from it. A new one is asked
// without being listed. The recipes for frameworks, whose packages are not here, are asked in their walks.
import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { guidesInStart, modulesOf, runnable } from '../support/page-code.ts'
import { PAGES, read, root } from '../support/pages.ts'
import { build } from '../support/scripts/build.mjs'
import { describeEngine } from '../support/services/engines.ts'
import { startPostgres } from '../support/services/postgres.ts'
import { freePort, start, until } from '../support/services/process.ts'
import { type Attacked, type Route, routesOf, Stranger } from './attacks.ts'

const control = new URL('../recipes/control.mjs', import.meta.url).href

interface Program {
  readonly name: string
  /** Of a page; an example is run where it is. */
  readonly code?: string
  readonly routes: Route[]
}

/** Why an example is not asked here. */
const EXCEPT = new Map([
  ['examples/https.mjs', 'needs a certificate, and is its routes in examples/serve.mjs: test/examples/short.test.ts'],
  ['examples/connect/moving.mjs', 'ends by itself'],
])

const { resolve } = createRequire(join(root, 'package.json'))
/** Whether its packages are those of `npm test`. */
const isInstalled = (code: string) =>
  [...code.matchAll(/(?:from|import) '([^'.][^']*)'/g)].every(([, name]) => {
    try {
      return name!.startsWith('coatcheck') || resolve(name!)
    } catch {
      return false
    }
  })
const isServer = (code: string) =>
  /\bcreateServer\([^)\s]|\.listen\(|^serve\($/m.test(code) && !code.includes('node:test')
const isOurs = ({ code }: { code: string }) =>
  isServer(code) && code.includes("'coatcheck'") && isInstalled(code) && !/from 'pg'/.test(code)

const SHOWN: Program[] = PAGES.flatMap(modulesOf)
  .filter(({ markers }) => !['file', 'from', 'compile only', 'not run'].some(marker => markers.has(marker)))
  .filter(isOurs)
  .map(({ place, code, markers }) => {
    // What tries a block stands after it; a program that another one exports is not listening yet.
    const [before = '', after = ''] = (markers.get('tried by') ? read(markers.get('tried by')!) : '').split(
      '/* the block */',
    )
    const own = code.replace(after, '')
    expect(own).toContain(before)
    const listening = own.includes('.listen(') ? own : `${own}\nserver.listen(3000)\n`
    return { name: place, code: listening, routes: routesOf(own) }
  })
/** The routes of the service, which a table of its own has. */
const SERVICE =
  "'GET /' 'POST /login' 'GET /profile' 'POST /logout' 'POST /password' 'GET /session' 'POST /session/rotate'"

const list = ['-c', 'safe.directory=*', 'ls-files', '-co', '--exclude-standard', 'examples/*.mjs']
const EXAMPLES: Program[] = execFileSync('git', list, { cwd: root, encoding: 'utf8' })
  .trim()
  .split('\n')
  .filter(name => !EXCEPT.has(name) && !/\.test\.mjs$|\/serve\.mjs$/.test(name))
  .map(name => ({ name, code: read(name) }))
  .filter(isOurs)
  // Those in a folder have a package.json, and take the package from where they are installed.
  .map(({ name, code }) => ({
    name,
    ...(name.split('/').length > 2 && { code: moved(name, code) }),
    routes: routesOf(name === 'examples/server.mjs' ? SERVICE : code),
  }))
/** An example that runs in another folder. */
function moved(name: string, code: string): string {
  const base = pathToFileURL(join(root, name))
  return code.replaceAll(/from '(\.[^']+)'/g, (_, path: string) => `from '${new URL(path, base)}'`)
}

let folder: string
beforeAll(async () => {
  await build()
  mkdirSync(join(root, '.tmp'), { recursive: true })
  folder = mkdtempSync(join(root, '.tmp/attacked-'))
}, 240_000)
afterAll(() => folder && rmSync(folder, { recursive: true, force: true }))

let number = 0
async function attack({ name, code, routes }: Program, env: Record<string, string> = {}): Promise<void> {
  const [port, at] = [await freePort(), ++number]
  const state = join(folder, `control-${at}.json`)
  const rule: Attacked['control'] = now => {
    writeFileSync(`${state}.new`, JSON.stringify(now))
    renameSync(`${state}.new`, state)
  }
  rule({})
  const file = code === undefined ? join(root, name) : join(folder, `${at}.mjs`)
  if (code !== undefined) writeFileSync(file, runnable(code).replaceAll(/\b3000\b/g, `${port}`))
  const running = start(process.execPath, ['--import', control, file], {
    cwd: root,
    env: { ...process.env, PORT: `${port}`, FRONT_PORT: '0', CONTROL: state, ...env },
  })
  try {
    const url = `http://127.0.0.1:${port}`
    await until(`${name} listens`, () => fetch(url), { server: running })
    const program: Attacked = { url, output: running.output, ended: running.ended, control: rule }
    const stranger = new Stranger(program, routes)
    await stranger.sendsWhatNoBrowserSends()
    await stranger.sendsBadBodies()
    await stranger.breaksItsInside()
    // A store under another library's middleware has no guard, as docs/connect.md says, and a token that no browser sends needs none.
    if (!/coatcheck\/connect'|Authorization: Bearer/.test(code ?? read(name))) await stranger.comesFromAnotherOrigin()
  } finally {
    await running.stop('SIGKILL')
  }
}

describe('a program that was copied answers a stranger without harm', () => {
  it('is found in pages and examples', () => {
    expect(SHOWN.length).toBeGreaterThan(3)
    expect(EXAMPLES.map(({ name }) => name)).toContain('examples/login.mjs')
  })

  it.each([...SHOWN, ...EXAMPLES].map(program => [program.name, program] as const))(
    '%s',
    (_, program) => attack(program),
    120_000,
  )
})

describeEngine('postgresql', 'Start, and Start with all its guides', () => {
  let server: Awaited<ReturnType<typeof startPostgres>>
  beforeAll(async () => {
    server = await startPostgres()
  }, 120_000)
  afterAll(() => server?.stop())

  it.each([
    ['alone', []],
    ['with all of them', PAGES.filter(page => page.startsWith('docs/guide/'))],
  ])(
    '%s',
    async (name, guides) => {
      const code = guidesInStart(guides)
      await server
        .pool()
        .query('DROP TABLE IF EXISTS users, identities, coatcheck_sessions, coatcheck_sessions_users CASCADE')
      await attack({ name, code, routes: routesOf(code) }, { DATABASE_URL: server.url() })
    },
    240_000,
  )
})
