// Promises of the README and of CONTRIBUTING.md that neither the compiler, the linter nor another test would notice being
// broken.
import { execFileSync } from 'node:child_process'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join, normalize } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'

const root = fileURLToPath(new URL('../..', import.meta.url))
const read = (path: string) => readFileSync(join(root, path), 'utf8')
const manifest = JSON.parse(read('package.json'))
const tracked = (...patterns: string[]) =>
  execFileSync('git', ['-c', 'safe.directory=*', 'ls-files', '-co', '--exclude-standard', ...patterns], {
    cwd: root,
    encoding: 'utf8',
  })
    .split('\n')
    .filter(path => path !== '' && existsSync(join(root, path)))

const under = (folder: string) => tracked(`${folder}/*.ts`)

/** What a file imports, types included: its own files as paths from the root, all else as written. */
const imports = (path: string): string[] =>
  [...read(path).matchAll(/^(?:import|export)\s+(?:[^'"`;]*?\sfrom\s+)?'([^']+)'|\bimport\(\s*'([^']+)'/gm)]
    .map(([, named, dynamic]) => (named ?? dynamic)!)
    .map(name => (name.startsWith('.') ? normalize(join(dirname(path), name)) : name))

/** The lock files of the root, and of the folders with what only some commands need. */
const LOCKS = tracked('*package-lock.json')
const ALL = [...under('src'), ...under('stores')]
/** The files of the top of src and stores: each is a subpath. */
const ENTRIES = ALL.filter(path => /^(?:src|stores)\/[\w-]+\.ts$|^src\/custom-store\/testing\.ts$/.test(path))
const subpathOf = (path: string) => (path === 'src/index.ts' ? '.' : `./${path.replace(/^src\//, '').slice(0, -3)}`)

describe('the package', () => {
  it('has one runtime dependency, cookie, one command, runs on Node 20, and has no side effects at import', () => {
    expect(Object.keys(manifest.dependencies)).toEqual(['cookie'])
    for (const field of ['peerDependencies', 'optionalDependencies', 'bundledDependencies'])
      expect(manifest[field]).toBeUndefined()
    expect(manifest).toMatchObject({ license: 'MIT', sideEffects: false, engines: { node: '>=20' } })
    expect(manifest.bin).toEqual({ coatcheck: 'dist/command.js' })
  })

  it.each(LOCKS)('locks the optional packages of every platform in %s: npm ci installs nothing without one', lock => {
    // npm drops those of other platforms from the lock when it adds a package beside an existing node_modules.
    const { packages } = JSON.parse(read(lock)) as {
      packages: Record<string, { optionalDependencies?: Record<string, string> }>
    }
    const locked = new Set(Object.keys(packages).map(path => path.slice(path.lastIndexOf('node_modules/') + 13)))
    for (const [path, { optionalDependencies = {} }] of Object.entries(packages))
      for (const name of Object.keys(optionalDependencies)) expect(locked, `${name} of ${path}`).toContain(name)
  })

  it('has no script that npm runs in the projects of its users', () => {
    // `prepare` too: npm does not run it for a tarball, but asks people to approve it. A clone is built by `dependencies`,
    // which npm runs after npm ci, and for no package that somebody depends on.
    for (const hook of ['preinstall', 'install', 'postinstall', 'prepublish', 'preprepare', 'prepare', 'postprepare'])
      expect(manifest.scripts[hook]).toBeUndefined()
  })

  it('exports each entry file, and nothing else', () => {
    expect(Object.keys(manifest.exports).sort()).toEqual([...ENTRIES.map(subpathOf), './package.json'].sort())
  })

  it.each(ENTRIES)('has an entry %s that only re-exports, by name', path => {
    const code = read(path).replace(/\/\*[\s\S]*?\*\/|^\s*\/\/.*$|export (?:type )?\{[^}]*\} from '[^']+'/gm, '')
    expect(code.trim()).toBe('')
  })
})

describe('who imports whom', () => {
  // From below: a room imports itself and the rooms before it.
  const ROOMS =
    'text, time, contract, data, session, guard, operations, manager, visits, next, import, better-auth, device-bound, connect'.split(
      ', ',
    )
  const NODE = /^node:(?:crypto|diagnostics_channel|events|net|util)$/
  // What a file may import beside its own folder: the first row whose pattern its path has.
  const RULES: readonly [files: RegExp, ...allowed: RegExp[]][] = [
    // The command is a program of its users: it takes the package by its name.
    [/^src\/command\//, /^node:/, /^coatcheck/, /^src\/text\//, /^src\/command\//, /^(?!\.|src\/|stores\/)/],
    [/^src\/custom-store\//, /^node:/, /^src\/(?:contract|text|time|custom-store)\//],
    // The application passes the client of a database in.
    [/^stores\/[\w-]+\.ts$/, /^src\/(?:contract|text|time)\//, /^stores\//],
    ...readdirSync(join(root, 'stores'), { withFileTypes: true })
      .filter(each => each.isDirectory())
      .map(({ name }): [RegExp, ...RegExp[]] => [
        new RegExp(`^stores/${name}/`),
        /^node:/,
        /^src\/(?:contract|text|time)\//,
        new RegExp(`^stores/(?:shared|${name})/`),
      ]),
    [/^src\/visits\/cookie\.ts$/, NODE, /^cookie$/, /^src\//],
    // Visits alone know a server (HTTP/2 and TLS by their types), and device-bound wraps them.
    [/^src\/(?:visits|device-bound)\//, NODE, /^node:(?:http2?|tls)$/, /^src\//],
    [/^src\//, NODE, /^src\//],
  ]

  it('src knows no database, no framework and no store, and stores know neither the manager nor each other', () => {
    const found = ALL.flatMap(path => {
      const [, ...allowed] = RULES.find(([files]) => files.test(path))!
      return imports(path)
        .filter(name => !allowed.some(pattern => pattern.test(name)))
        .map(name => `${path} imports ${name}`)
    })
    expect(found).toEqual([])
  })

  it('rooms of src import one way, and nothing imports the command', () => {
    const rooms = ALL.filter(path => /^src\/(?!command|custom-store)[\w-]+\//.test(path))
    const roomOf = (path: string) => path.split('/')[1]!
    expect([...new Set(rooms.map(roomOf))].sort()).toEqual([...ROOMS].sort())
    const upward = rooms.flatMap(path =>
      imports(path)
        .filter(name => name.startsWith('src/'))
        .filter(name => !ROOMS.slice(0, ROOMS.indexOf(roomOf(path)) + 1).includes(roomOf(name)))
        .map(name => `${path} imports ${name}`),
    )
    expect(upward).toEqual([])
  })

  it('tests ask what an application can ask: only those of test/unit import from src and stores', () => {
    // The command is a program; a test of one of its files asks it in process. Those of Redis count its scripts.
    const allowed: readonly [folder: RegExp, imported: RegExp][] = [
      [/^test\/(?:unit|proof)\//, /./],
      [/^test\/command\//, /^src\/command\//],
      [/^test\/redis\//, /^stores\/redis\/scripts\.ts$/],
    ]
    const found = under('test')
      .filter(path => path.endsWith('.test.ts'))
      .flatMap(path =>
        imports(path)
          .filter(name => /^(?:src|stores)\//.test(name))
          .filter(name => !allowed.some(([folder, imported]) => folder.test(path) && imported.test(name)))
          .map(name => `${path} imports ${name}`),
      )
    expect(found).toEqual([])
  })
})

describe('the repository', () => {
  const texts = tracked()
    .filter(path => /\.(ts|mts|cts|mjs|cjs|js|json|md|yml|html|css|sql)$|^\.ci\//.test(path))
    .filter(path => !path.endsWith('package-lock.json') && path !== 'test/package/house.test.ts')

  it('names no path of one machine', () => {
    for (const path of texts) expect(/(?:^|[\s"'`(])\/(?:work|home|Users|root)\//m.test(read(path)), path).toBe(false)
  })

  it('has no test that is switched off in a way that the linter does not see', () => {
    const tests = texts.filter(path => /^test\/.*\.ts$/.test(path))
    for (const path of tests) expect(read(path), path).not.toMatch(/\.todo\(|\.skip\.each|\bskip: true/)
  })
})

// What test/support/strict-expect.ts forbids.
describe('an expectation that could not fail', () => {
  it('is a rejection without an error', async () => {
    for (const reason of [undefined, null])
      for (const expected of [undefined, 'text', /text/]) {
        const passed = expect(Promise.reject(reason)).rejects.toThrow(expected)
        expect(await passed.then(String, error => error.message)).toContain(`was rejected with ${reason}`)
      }
    await expect(Promise.reject(new TypeError('text'))).rejects.toThrow('text')
  })

  it('is a regular expression in an object, which toMatchObject takes for any text', () => {
    expect(() => expect(new Error('text')).toMatchObject({ message: /other/ })).toThrow('stringMatching(/other/)')
    expect(new Error('text')).toMatchObject({ message: expect.stringMatching(/text/) })
  })
})
