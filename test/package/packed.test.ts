// The package as npm would deliver it: what is in it, and its types. What it does once it is installed: installed.test.ts.
import { execFile } from 'node:child_process'
import { cpSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { npmProject, type Pack, pack, root, tool } from '../support/consumer.ts'

const run = promisify(execFile)
const manifest = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))

let folder: string
let project: string
let files: Pack['files']

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'coatcheck-consumer-'))
  const packed = await pack(folder)
  files = packed.files
  project = (await npmProject(join(folder, 'project'), packed.path)).folder
  cpSync(join(project, 'consumer.mts'), join(project, 'consumer.ts'))
}, 240_000)
afterAll(() => rmSync(folder, { recursive: true, force: true }))

describe('the packed package', () => {
  it('contains what users need and nothing else', () => {
    const beside = files
      .map(file => file.path)
      .filter(path => !/^(?:dist|docs|examples|test\/guarantees|\.github)\//.test(path))
    expect(beside.sort()).toEqual(['CHANGELOG.md', 'LICENSE', 'README.md', 'package.json'])
    // Of a recipe that was installed and run.
    expect(
      files
        .map(file => file.path)
        .filter(path =>
          /node_modules|package-lock|next-env|tsbuildinfo|^examples\/.*\/(?:dist|build|\..*)\//.test(path),
        ),
    ).toEqual([])
    const built = files.map(file => file.path).filter(path => path.startsWith('dist/'))
    expect(built.filter(path => !/\.(js|cjs|d\.ts|d\.cts)$/.test(path))).toEqual([])
    for (const entry of Object.values(manifest.exports))
      if (typeof entry === 'object')
        for (const condition of Object.values(entry as Record<string, Record<string, string>>))
          for (const path of Object.values(condition)) expect(built).toContain(path.replace('./', ''))
  })

  it('names its files after subpaths and rooms, so that a stack trace means the same in every release', () => {
    const built = files.map(file => file.path).filter(path => /^dist\/.*\.c?js$/.test(path))
    const subpaths = Object.values(manifest.exports).flatMap(entry => {
      const { import: esm, require: cjs } = entry as { import?: { default: string }; require?: { default: string } }
      return esm && cjs ? [esm.default.slice(2), cjs.default.slice(2)] : []
    })
    const rooms = readdirSync(join(root, 'src'), { withFileTypes: true })
      .filter(entry => entry.isDirectory())
      .map(({ name }) => name)
    // `visits-node` is what of visits only the subpaths on node:http load.
    const inRooms = [...rooms, 'visits-node', 'shared', 'sql', 'sqlite'].flatMap(name => [
      `dist/core/${name}.js`,
      `dist/core/${name}.cjs`,
    ])
    expect(built.sort()).toEqual([...subpaths, ...inRooms, 'dist/command.js'].sort())
  })

  it('has whatever its pages link to', () => {
    // A page may link to a folder too, such as that of a recipe.
    const folders = files.flatMap(({ path }) =>
      path.split('/').map((_, depth, parts) => parts.slice(0, depth).join('/')),
    )
    const packed = new Set([...files.map(file => file.path), ...folders])
    const pages = [...packed].filter(path => path.endsWith('.md'))
    expect(pages).toContain('README.md')
    for (const page of pages)
      for (const [, target] of readFileSync(join(root, page), 'utf8').matchAll(/\]\(([^)\s#]+)[^)]*\)/g))
        if (!/^[a-z]+:/.test(target!))
          expect(packed, `${page} links to ${target}`).toContain(join(dirname(page), target!))
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
    expect(usesHttp('dist/node.js')).toEqual(['dist/core/visits-node.js'])
  })

  it('stays small: a program with the core, visits on node:http and the memory store loads under 244 kB', () => {
    const sizes = new Map(files.map(({ path, size }) => [path, size]))
    const loaded = loadedBy('dist/index.js', 'dist/node.js', 'dist/stores/memory.js')
    // 225 kB until visits could check a device: what they need for it is 4 kB, and the protocol is a subpath of its own.
    // 230 kB until the end of a remember-me series could be finished by a repeated call.
    expect([...loaded].filter(path => /device-bound/.test(path))).toEqual([])
    // What the entry files import was found, and is counted.
    expect(loaded).toContain('dist/core/manager.js')
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
    for (const extension of [/\.js$/, /\.cjs$/]) {
      const classes = files
        .filter(file => extension.test(file.path))
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
    { module: 'nodenext', moduleResolution: 'nodenext', file: 'consumer.mts' },
    { module: 'nodenext', moduleResolution: 'nodenext', file: 'consumer.cts' },
    { module: 'nodenext', moduleResolution: 'nodenext', file: 'mixed.mts' },
    { module: 'node16', moduleResolution: 'node16', file: 'consumer.mts' },
    { module: 'node16', moduleResolution: 'node16', file: 'consumer.cts' },
    { module: 'esnext', moduleResolution: 'bundler', file: 'consumer.mts' },
    { module: 'commonjs', moduleResolution: 'node10', file: 'consumer.ts' },
  ])(
    'type-checks under $moduleResolution ($file), our declarations included',
    async ({ file, ...options }) => {
      await typeCheck(file, { ...options, types: ['node'] })
    },
    180_000,
  )

  it('type-checks without the types of Node.js where only the web platform is used', async () => {
    await typeCheck('web.mts', {
      module: 'esnext',
      moduleResolution: 'bundler',
      lib: ['ES2022', 'ESNext.Disposable', 'DOM'],
      types: [],
    })
  }, 180_000)
})

async function typeCheck(file: string, options: Record<string, unknown>): Promise<void> {
  const config = join(project, `tsconfig.${file}.${options.moduleResolution}.json`)
  const compilerOptions = {
    target: 'ES2022',
    strict: true,
    exactOptionalPropertyTypes: true,
    noUncheckedIndexedAccess: true,
    skipLibCheck: false,
    noEmit: true,
    typeRoots: [tool('@types')],
    ...options,
  }
  writeFileSync(config, JSON.stringify({ compilerOptions, files: [file] }))
  expect(existsSync(join(project, file))).toBe(true)
  const { stdout } = await run(process.execPath, [tool('typescript/bin/tsc'), '-p', config], { cwd: project }).catch(
    error => ({ stdout: `${error.stdout}${error.stderr}` }),
  )
  expect(stdout).toBe('')
}
