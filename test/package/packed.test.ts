// The package as npm would deliver it: what is in it, and its types. What it does once it is installed: installed.test.ts.
import { execFileSync } from 'node:child_process'
import { cpSync, mkdtempSync, readFileSync, realpathSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import ts from 'typescript'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { messageOf, problemsIn, programs } from '../support/compiler.ts'
import { npmProject, type Pack, pack, root } from '../support/consumer.ts'
import { PAGES, read } from '../support/pages.ts'

const manifest = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))

const TYPED = {
  target: 'ES2022',
  strict: true,
  exactOptionalPropertyTypes: true,
  noUncheckedIndexedAccess: true,
  skipLibCheck: false,
  noEmit: true,
  types: ['node'],
  typeRoots: [join(root, 'node_modules/@types')],
}

let folder: string
let project: string
let files: Pack['files']
let size: number

beforeAll(async () => {
  folder = realpathSync(mkdtempSync(join(tmpdir(), 'coatcheck-consumer-')))
  const packed = await pack(folder)
  files = packed.files
  size = packed.size
  project = (await npmProject(join(folder, 'project'), packed.path)).folder
  cpSync(join(project, 'consumer.mts'), join(project, 'consumer.ts'))
}, 240_000)
afterAll(() => rmSync(folder, { recursive: true, force: true }))

describe('the packed package', () => {
  it('contains every page, and what its exports lead to', () => {
    const pages = files.map(file => file.path).filter(path => path.startsWith('docs/') && path.endsWith('.md'))
    expect(pages.sort()).toEqual(PAGES.filter(page => page.startsWith('docs/')))
    const built = files.map(file => file.path).filter(path => path.startsWith('dist/'))
    for (const entry of Object.values(manifest.exports))
      if (typeof entry === 'object')
        for (const condition of Object.values(entry as Record<string, Record<string, string>>))
          for (const path of Object.values(condition)) expect(built).toContain(path.replace('./', ''))
  })

  it('has the examples of one file that its pages tell to copy, and what those import', () => {
    const paths = new Set(files.map(({ path }) => path))
    const examples = [...paths].filter(path => path.startsWith('examples/'))
    expect(examples.filter(path => !/^examples\/[\w-]+\.mjs$/.test(path))).toEqual([])
    const linked = PAGES.flatMap(page =>
      [...read(page).matchAll(/\]\((?:\.\.\/)*(examples\/[\w-]+\.mjs)\)/g)].map(([, path]) => path!),
    )
    const imported = examples.flatMap(path =>
      [...read(path).matchAll(/ from '\.\/([^']+)'/g)].map(([, name]) => `examples/${name}`),
    )
    expect(linked).toContain('examples/once.mjs')
    // The service is a folder of its own, for a clone.
    const missing = [...linked, ...imported].filter(path => !paths.has(path))
    expect(new Set(missing)).toEqual(new Set(['examples/server.mjs']))
  })

  it('is at most 450 kB packed, with its pages', () => {
    expect(size).toBeLessThan(450_000)
  })

  it('has what its llms.txt leads to, for an assistant that reads node_modules', () => {
    const paths = new Set(files.map(({ path }) => path))
    const links = [...read('llms.txt').matchAll(/\]\(([^)]+)\)/g)].map(([, target]) => target!)
    expect(links.length).toBeGreaterThan(50)
    expect(links.filter(target => !paths.has(target))).toEqual([])
  })

  it('has what test/package/contents.txt lists, and only what is in the repository or was built', () => {
    const patterns = readFileSync(join(root, 'test/package/contents.txt'), 'utf8').trim().split('\n')
    // `*` is part of a name, `**` a path.
    const matchers = patterns.map(
      pattern =>
        new RegExp(
          `^${pattern.replaceAll(/[.+]/g, '\\$&').replaceAll(/\*+/g, stars => (stars === '*' ? '[^/]*' : '.*'))}$`,
        ),
    )
    const paths = files.map(({ path }) => path)
    expect(paths.filter(path => !matchers.some(matcher => matcher.test(path)))).toEqual([])
    expect(patterns.filter((_, i) => !paths.some(path => matchers[i]!.test(path)))).toEqual([])
    const inRepository = new Set(execFileSync('git', ['ls-files'], { cwd: root, encoding: 'utf8' }).split('\n'))
    expect(paths.filter(path => !path.startsWith('dist/') && !inRepository.has(path))).toEqual([])
  })

  /** The files that are loaded with these. */
  function loadedBy(...entries: readonly string[]): ReadonlySet<string> {
    const loaded = new Set(entries)
    for (const path of loaded)
      for (const [, name] of readFileSync(join(root, path), 'utf8').matchAll(/(?:from|import) '(\.[^']+)'/g))
        loaded.add(join(dirname(path), name!))
    return loaded
  }

  it('loads node:http with the subpaths for it alone: other runtimes do not have it', () => {
    const usesHttp = (...entries: string[]) =>
      [...loadedBy(...entries)].filter(path => /from 'node:http'/.test(readFileSync(join(root, path), 'utf8')))
    expect(usesHttp('dist/index.js', 'dist/fetch.js', 'dist/import.js', 'dist/stores/memory.js')).toEqual([])
    expect(usesHttp('dist/node.js')).toHaveLength(1)
  })

  it('stays small: a program with the core, visits on node:http and the memory store loads under 244 kB', () => {
    const sizes = new Map(files.map(({ path, size }) => [path, size]))
    const loaded = loadedBy('dist/index.js', 'dist/node.js', 'dist/stores/memory.js')
    // 225 kB until visits could check a device: what they need for it is 4 kB, and the protocol is a subpath of its own.
    // 230 kB until the end of a remember-me series could be finished by a repeated call.
    expect([...loaded].filter(path => /device-bound/.test(path))).toEqual([])
    // What the entry files import was found, and is counted.
    expect([...loaded].some(path => readFileSync(join(root, path), 'utf8').includes('SessionManager = class'))).toBe(
      true,
    )
    expect([...loaded].reduce((sum, path) => sum + (sizes.get(path) ?? Number.NaN), 0)).toBeLessThan(244_000)
    for (const [path, size] of sizes) expect(size, path).toBeLessThan(150_000)
  })

  it('has no path of this machine in it', () => {
    const dist = join(project, 'node_modules/coatcheck')
    for (const { path } of files) {
      const text = readFileSync(join(dist, path), 'utf8')
      expect(text.includes(root) || /\/(work|home|Users|tmp)\//.test(text), path).toBe(false)
    }
  })

  it('declares each class once per module format, so that subpaths share it', () => {
    for (const isCommonJs of [false, true]) {
      const classes = files
        .filter(({ path }) => path.endsWith('.js') && path.startsWith('dist/cjs/') === isCommonJs)
        .flatMap(({ path }) => [
          ...readFileSync(join(project, 'node_modules/coatcheck', path), 'utf8').matchAll(
            /^var (SessionError|SessionStoreError|SessionManager|SessionCookie|MemoryStore) = class\b/gm,
          ),
        ])
        .map(match => match[1])
      expect(classes.sort()).toEqual(
        ['MemoryStore', 'SessionCookie', 'SessionError', 'SessionManager', 'SessionStoreError'].sort(),
      )
    }
  })
})

describe('a project in TypeScript that installed it', () => {
  it.each([
    { module: 'nodenext', moduleResolution: 'nodenext', files: ['consumer.mts', 'mixed.mts'] },
    { module: 'node16', moduleResolution: 'node16', files: ['consumer.mts', 'mixed.mts'] },
    { module: 'esnext', moduleResolution: 'bundler', files: ['consumer.mts'] },
    { module: 'commonjs', moduleResolution: 'node10', files: ['consumer.ts'] },
    // Only the web platform: without the types of Node.js.
    {
      module: 'esnext',
      moduleResolution: 'bundler',
      lib: ['ES2022', 'ESNext.Disposable', 'DOM'],
      types: [],
      files: ['web.mts'],
    },
  ])(
    'type-checks under $moduleResolution ($files.0), our declarations included',
    ({ files, ...more }) => {
      const { options, errors } = ts.convertCompilerOptionsFromJson({ ...TYPED, ...more }, project)
      expect(errors).toEqual([])
      const names = files.map(name => join(project, name))
      const program = programs(options)(names)
      const checked = program.getSourceFiles().filter(({ fileName }) => fileName.startsWith(realpathSync(project)))
      const declared = checked.filter(({ fileName }) => fileName.includes('/node_modules/coatcheck/dist/'))
      expect([checked.length - declared.length >= names.length, declared.length > 2]).toEqual([true, true])
      const global = [...program.getOptionsDiagnostics(), ...program.getGlobalDiagnostics()]
      const found = [...global, ...problemsIn(program, checked)]
      expect(found.map(each => `${each.file?.fileName}: ${messageOf(each)}`)).toEqual([])
    },
    180_000,
  )
})
