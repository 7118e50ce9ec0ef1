// Promises of the README and of CONTRIBUTING.md that no other test would notice being broken.
import { execFileSync } from 'node:child_process'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join, normalize } from 'node:path'
import { fileURLToPath } from 'node:url'
import ts from 'typescript'
import { describe, expect, it } from 'vitest'

const root = fileURLToPath(new URL('../..', import.meta.url))
const read = (path: string) => readFileSync(join(root, path), 'utf8')
const manifest = JSON.parse(read('package.json'))
const under = (folder: string) =>
  readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
    .map(path => join(folder, path))
    .filter(path => path.endsWith('.ts') && !path.includes('node_modules/'))
    .sort()

const tracked = (...patterns: string[]) =>
  execFileSync('git', ['-c', 'safe.directory=*', 'ls-files', '-co', '--exclude-standard', ...patterns], {
    cwd: root,
    encoding: 'utf8',
  })
    .split('\n')
    .filter(path => path !== '' && existsSync(join(root, path)))

/** What a file imports: its own files as paths from the root, all else as written. */
function imports(path: string, { types = true } = {}): string[] {
  const statements = read(path).matchAll(
    /^(?:import|export)\s+(type\s)?(?:[^'"`;]*?\sfrom\s+)?'([^']+)'|\bimport\(\s*'([^']+)'/gm,
  )
  return [...statements]
    .filter(([, type]) => types || type === undefined)
    .map(([, , named, dynamic]) => (named ?? dynamic)!)
    .map(name => (name.startsWith('.') ? normalize(join(dirname(path), name)) : name))
}
/** The lock files of the root, and of the folders with what only some commands need. */
const LOCKS = tracked('*package-lock.json')
const isOwn = (name: string) => /^(?:src|stores)\//.test(name)

const SRC = under('src').filter(path => !/^src\/(?:command|custom-store)\//.test(path))
const STORES = [...under('stores'), ...under('src/custom-store')]
/** The program behind `npx coatcheck`: built beside the package, and no subpath of it. */
const COMMAND = under('src/command')
const nameOf = (path: string) => {
  if (path === 'src/index.ts') return '.'
  return `./${path.replace(/^src\//, '').slice(0, -3)}`
}
/** The files of the top of src and stores: each is a subpath, and only re-exports. */
const ENTRIES = Object.fromEntries(
  [...SRC, ...STORES]
    .filter(path => /^(?:src|stores)\/[\w-]+\.ts$|^src\/custom-store\/testing\.ts$/.test(path))
    .map(path => [nameOf(path), path]),
)

describe('the package', () => {
  it('has one command, which is built beside the subpaths', () => {
    expect(manifest.bin).toEqual({ coatcheck: 'dist/command.js' })
    expect(read('src/command/bin.ts')).toMatch(/^#!\/usr\/bin\/env node\n/)
  })

  it('has one runtime dependency, cookie', () => {
    expect(Object.keys(manifest.dependencies)).toEqual(['cookie'])
    for (const field of ['peerDependencies', 'optionalDependencies', 'bundledDependencies'])
      expect(manifest[field]).toBeUndefined()
  })

  it('runs on Node 20 and later, is MIT, and has no side effects at import', () => {
    expect(manifest).toMatchObject({
      name: 'coatcheck',
      license: 'MIT',
      type: 'module',
      sideEffects: false,
      engines: { node: '>=20' },
    })
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

  it('is built in a clone by the script that npm runs after npm ci', () => {
    expect(manifest.scripts.dependencies).toBe('node test/support/scripts/build.mjs')
  })

  it('exports each entry file, and nothing else', () => {
    expect(Object.keys(manifest.exports).sort()).toEqual([...Object.keys(ENTRIES), './package.json'].sort())
  })

  it.each(Object.keys(ENTRIES))('exports %s for import and require, with its types', key => {
    const built = key === '.' ? 'index' : key.slice(2)
    expect(manifest.exports[key]).toEqual({
      import: { types: `./dist/${built}.d.ts`, default: `./dist/${built}.js` },
      require: { types: `./dist/cjs/${built}.d.ts`, default: `./dist/cjs/${built}.js` },
    })
  })

  it('gives types before code in every condition, as TypeScript demands', () => {
    for (const entry of Object.values(manifest.exports))
      if (typeof entry === 'object')
        for (const condition of Object.values(entry as object))
          expect(Object.keys(condition)).toEqual(['types', 'default'])
  })
})

describe('the entry files', () => {
  it.each(Object.values(ENTRIES))('%s only re-exports', path => {
    const code = read(path)
      .replace(/\/\*[\s\S]*?\*\/|^\s*\/\/.*$/gm, '')
      .replace(/export (?:type )?\{[^}]*\} from '[^']+'/g, '')
      .trim()
    expect(code).toBe('')
  })

  it('export by name only, and no default', () => {
    for (const path of [...SRC, ...STORES]) {
      expect(read(path), path).not.toMatch(/^export default|^export \*/m)
    }
  })
})

describe('who imports whom', () => {
  it('src knows no database and no framework: its only package is cookie, in one file', () => {
    for (const path of SRC) {
      const packages = imports(path).filter(name => !isOwn(name) && !name.startsWith('node:'))
      expect(packages, path).toEqual(path === 'src/visits/cookie.ts' ? ['cookie'] : [])
    }
  })

  it('src uses few modules of Node.js, so that it also runs where only these exist', () => {
    const used = new Set(SRC.flatMap(path => imports(path, { types: false }).filter(name => name.startsWith('node:'))))
    const needed = ['node:crypto', 'node:diagnostics_channel', 'node:events', 'node:http', 'node:net', 'node:util']
    expect([...used].filter(name => !needed.includes(name))).toEqual([])
  })

  it('src never imports a store', () => {
    for (const path of SRC)
      expect(
        imports(path).filter(name => name.startsWith('stores/')),
        path,
      ).toEqual([])
  })

  it('only visits know node:http: the core has no server in it', () => {
    // device-bound wraps the visits.
    for (const path of SRC)
      if (imports(path).includes('node:http')) expect(path).toMatch(/^src\/(?:visits|device-bound)\//)
  })

  it('stores take the contract, deadlines and the texts of messages from src, and nothing else', () => {
    for (const path of STORES)
      for (const name of imports(path).filter(own => own.startsWith('src/') && dirname(own) !== dirname(path)))
        expect(name, path).toMatch(/^src\/(contract|text|time)\//)
  })

  it('stores never import each other, only what they share', () => {
    const family = (path: string) => path.split('/')[1]!.replace('.ts', '')
    for (const path of under('stores').filter(file => /^stores\/[\w-]+\//.test(file)))
      for (const name of imports(path).filter(own => own.startsWith('stores/')))
        expect([family(path), 'shared'], `${path} imports ${name}`).toContain(family(name))
  })

  it('stores never import a database client: the application passes it in', () => {
    for (const path of STORES)
      expect(
        imports(path).filter(name => !isOwn(name) && !name.startsWith('node:')),
        path,
      ).toEqual([])
  })

  it('the command imports the package by its name, as a program of its users does, and drivers only as types', () => {
    for (const path of COMMAND)
      for (const name of imports(path, { types: false }).filter(each => !each.startsWith('src/command/')))
        expect(name, path).toMatch(/^(?:node:[\w/]+|coatcheck(?:\/[\w/-]+)?|src\/text\/[\w-]+\.ts)$/)
  })

  it('nothing imports the command', () => {
    for (const path of [...SRC, ...STORES])
      expect(
        imports(path).filter(name => name.startsWith('src/command/')),
        path,
      ).toEqual([])
  })

  it('rooms import one way', () => {
    // Types included. From below: a room imports itself and the rooms before it.
    const layers = [
      'text',
      'time',
      'contract',
      'data',
      'session',
      'guard',
      'operations',
      'manager',
      'visits',
      'next',
      'import',
      'better-auth',
      'device-bound',
      'connect',
    ]
    const rooms = SRC.filter(path => /^src\/[\w-]+\//.test(path))
    const roomOf = (path: string) => path.split('/')[1]!
    expect([...new Set(rooms.map(roomOf))].sort()).toEqual([...layers].sort())
    const upward = rooms.flatMap(path =>
      imports(path)
        .filter(name => name.startsWith('src/'))
        .filter(name => !layers.slice(0, layers.indexOf(roomOf(path)) + 1).includes(roomOf(name)))
        .map(name => `${path} imports ${name}`),
    )
    expect(upward).toEqual([])
  })

  it('files of a room never import each other in a circle', () => {
    for (const start of [...SRC, ...STORES, ...COMMAND]) {
      const reached = new Set<string>()
      const next = imports(start).filter(isOwn)
      for (let path = next.pop(); path !== undefined; path = next.pop()) {
        if (reached.has(path)) continue
        reached.add(path)
        next.push(...imports(path).filter(isOwn))
      }
      expect(reached.has(start), `${start} leads back to itself`).toBe(false)
    }
  })

  it('tests ask what an application can ask: only those of test/unit import from src and stores', () => {
    // The command is a program; a test of one of its files asks it in process. Those of Redis count its scripts.
    const allowed: readonly [folder: string, imported: RegExp][] = [
      ['test/unit/', /./],
      ['test/api/command/', /^src\/command\//],
      ['test/command/', /^src\/command\//],
      ['test/redis/', /^stores\/redis\/scripts\.ts$/],
    ]
    const found = under('test')
      .filter(path => path.endsWith('.test.ts') && !path.startsWith('test/proof/'))
      .flatMap(path =>
        imports(path)
          .filter(isOwn)
          .filter(name => !allowed.some(([folder, imported]) => path.startsWith(folder) && imported.test(name)))
          .map(name => `${path} imports ${name}`),
      )
    expect(found).toEqual([])
  })

  it('nothing but one file takes setImmediate from the globals: a browser that a test imitates has none', () => {
    for (const path of [...SRC, ...STORES].filter(file => !file.startsWith('src/custom-store/')))
      if (/\bsetImmediate\(/.test(read(path)) && path !== 'src/time/next-turn.ts')
        expect(
          imports(path).some(name => /^node:timers(?:\/promises)?$/.test(name)),
          path,
        ).toBe(true)
  })

  it('relative imports name the file, with its .ts', () => {
    for (const path of [...SRC, ...STORES, ...COMMAND])
      for (const name of imports(path).filter(isOwn))
        expect(existsSync(join(root, name)), `${path}: ${name}`).toBe(true)
  })
})

describe('the repository', () => {
  const texts = tracked()
    .filter(path => /\.(ts|mts|cts|mjs|cjs|js|json|md|yml|html|css|sql)$|^\.ci\//.test(path))
    .filter(path => !path.endsWith('package-lock.json') && path !== 'test/package/house.test.ts')

  it('names no path of one machine', () => {
    for (const path of texts) expect(/(?:^|[\s"'`(])\/(?:work|home|Users|root)\//m.test(read(path)), path).toBe(false)
  })

  it('has no test that runs alone or is switched off without a reason', () => {
    for (const path of texts.filter(file => /^(?:test|proof)\/.*\.ts$/.test(file)))
      expect(/\b(?:it|test|describe)\.only\(|\.todo\(/.test(read(path)), path).toBe(false)
  })

  it('compares no text with a regular expression in a place where vitest takes any two of them for equal', () => {
    // toMatchObject({ message: /a/ }) passes with every message; expect.stringMatching(/a/) does not.
    const found: string[] = []
    for (const path of texts.filter(file => /^(?:test|proof)\/.*\.ts$/.test(file))) {
      const text = read(path)
      if (!/[:,([]\s*\/[^/*\s]/.test(text)) continue
      const file = ts.createSourceFile(path, text, ts.ScriptTarget.Latest, true)
      const expressionsIn = (node: ts.Node): void => {
        const { line } = file.getLineAndCharacterOfPosition(node.getStart(file))
        if (ts.isCallExpression(node)) return
        if (ts.isRegularExpressionLiteral(node)) found.push(`${path}:${line + 1} ${node.getText(file)}`)
        ts.forEachChild(node, expressionsIn)
      }
      const callsIn = (node: ts.Node): void => {
        if (
          ts.isCallExpression(node) &&
          ts.isPropertyAccessExpression(node.expression) &&
          ['toMatchObject', 'toEqual', 'toStrictEqual', 'toContainEqual', 'objectContaining'].includes(
            node.expression.name.text,
          )
        )
          node.arguments.forEach(expressionsIn)
        ts.forEachChild(node, callsIn)
      }
      callsIn(file)
    }
    expect(found).toEqual([])
  })

  it('takes no rejection without an error for the error that a test expects', async () => {
    for (const reason of [undefined, null])
      for (const expected of [undefined, 'text', /text/]) {
        const passed = expect(Promise.reject(reason)).rejects.toThrow(expected)
        expect(await passed.then(String, error => error.message)).toContain(`was rejected with ${reason}`)
      }
    await expect(Promise.reject(new TypeError('text'))).rejects.toThrow('text')
  })

  it('documents every environment variable that the example service reads', () => {
    const readme = read('README.md')
    const used = new Set<string>()
    for (const path of texts.filter(file => file.startsWith('examples/server')))
      for (const [, dotted, listed] of read(path).matchAll(
        /process\.env\.([A-Z_]+)|\{([A-Z_,\s=\w'.:/]+)\} = process\.env/g,
      )) {
        if (dotted) used.add(dotted)
        for (const [name] of (listed ?? '').matchAll(/\b[A-Z][A-Z_]+\b/g)) used.add(name)
      }
    for (const name of used) expect(readme, name).toContain(`\`${name}\``)
    for (const name of ['PORT', 'HOST', 'STORE_URL']) expect(readme).toContain(`\`${name}\``)
  })
})
