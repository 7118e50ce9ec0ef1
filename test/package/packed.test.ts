// The package as npm would deliver it: packed, installed into an empty project, and used the way consumers do.
import { execFile } from 'node:child_process'
import { cpSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { build } from '../services/build.ts'

const run = promisify(execFile)
const root = fileURLToPath(new URL('../..', import.meta.url))
const tool = (path: string) => join(root, 'node_modules', path)
const manifest = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
const subpaths = Object.keys(manifest.exports)
  .filter(key => key !== './package.json')
  .map(key => key.replace('.', 'coatcheck'))

let project: string
let files: { path: string; size: number }[]

beforeAll(async () => {
  await build()
  project = mkdtempSync(join(tmpdir(), 'coatcheck-consumer-'))
  const { stdout } = await run('npm', ['pack', '--json', '--ignore-scripts', '--pack-destination', project], {
    cwd: root,
  })
  const [pack] = JSON.parse(stdout)
  files = pack.files
  cpSync(fileURLToPath(new URL('fixtures', import.meta.url)), project, { recursive: true })
  writeFileSync(join(project, 'package.json'), '{ "name": "consumer", "private": true, "type": "module" }\n')
  await run('npm', ['install', `./${pack.filename}`, '--prefer-offline', '--no-audit', '--no-fund'], { cwd: project })
}, 240_000)
afterAll(() => rmSync(project, { recursive: true, force: true }))

const node = async (args: string[]) => (await run(process.execPath, args, { cwd: project })).stdout

describe('the packed package', () => {
  it('contains what users need and nothing else', () => {
    const beside = files.map(file => file.path).filter(path => !path.startsWith('dist/'))
    expect(beside.sort()).toEqual(['CHANGELOG.md', 'LICENSE', 'README.md', 'package.json'])
    const built = files.map(file => file.path).filter(path => path.startsWith('dist/'))
    expect(built.filter(path => !/\.(js|cjs|d\.ts|d\.cts)$/.test(path))).toEqual([])
    for (const entry of Object.values(manifest.exports))
      if (typeof entry === 'object')
        for (const condition of Object.values(entry as Record<string, Record<string, string>>))
          for (const path of Object.values(condition)) expect(built).toContain(path.replace('./', ''))
  })

  it('stays small: a program with the core, the http edge and the memory store loads under 150 kB', () => {
    const sizes = new Map(files.map(({ path, size }) => [path, size]))
    const loaded = new Set<string>()
    const load = (path: string) => {
      if (loaded.has(path)) return
      loaded.add(path)
      const code = readFileSync(join(root, path), 'utf8')
      for (const [, name] of code.matchAll(/(?:from|import) "(\.[^"]+)"/g)) load(join(dirname(path), name!))
    }
    for (const entry of ['dist/index.js', 'dist/http.js', 'dist/stores/memory.js']) load(entry)
    expect([...loaded].reduce((sum, path) => sum + (sizes.get(path) ?? Number.NaN), 0)).toBeLessThan(150_000)
    for (const [path, size] of sizes) expect(size, path).toBeLessThan(150_000)
  })

  it('brings one dependency, cookie, into the project', () => {
    const lock = JSON.parse(readFileSync(join(project, 'package-lock.json'), 'utf8'))
    expect(Object.keys(lock.packages).sort()).toEqual(['', 'node_modules/coatcheck', 'node_modules/cookie'])
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

describe('an empty project that installed it', () => {
  it.each(subpaths)('gets the same names from %s with import and with require', async subpath => {
    const imported = JSON.parse(await node(['names.mjs', subpath]))
    const required = JSON.parse(await node(['names.cjs', subpath]))
    expect(imported.length).toBeGreaterThan(0)
    expect(required).toEqual(imported)
  })

  it('logs a user in and out from ESM', async () => {
    expect(await node(['session.mjs'])).toBe('ada null\n')
  })

  it('logs a user in and out from CommonJS', async () => {
    expect(await node(['session.cjs'])).toBe('ada null\n')
  })

  it('recognises errors across ESM, CommonJS and subpaths', async () => {
    expect(JSON.parse(await node(['instanceof.mjs']))).toEqual({
      esmInEsm: true,
      cjsInEsm: true,
      esmInCjs: true,
      storeErrorIsSessionError: true,
      plainErrorIsNot: false,
      subpathThrows: true,
    })
  })

  it('ends by itself: importing every subpath opens nothing', async () => {
    expect(await node(['import-all.mjs', ...subpaths])).toBe('imported\n')
  })

  it('works in Jest, with require', async () => {
    const { stderr } = await run(
      process.execPath,
      [tool('jest/bin/jest.js'), '--rootDir', project, '--config', '{"transform":{},"testMatch":["**/jest.test.cjs"]}'],
      { cwd: project },
    )
    expect(stderr).toMatch(/Tests: +2 passed, 2 total/)
  })

  it('works in Jest, with import', async () => {
    const { stderr } = await run(
      process.execPath,
      [
        '--experimental-vm-modules',
        tool('jest/bin/jest.js'),
        '--rootDir',
        project,
        '--config',
        '{"transform":{},"testMatch":["**/jest.test.mjs"]}',
      ],
      { cwd: project },
    )
    expect(stderr).toMatch(/Tests: +2 passed, 2 total/)
  })

  it.each([
    { module: 'nodenext', moduleResolution: 'nodenext', file: 'consumer.mts' },
    { module: 'nodenext', moduleResolution: 'nodenext', file: 'consumer.cts' },
    { module: 'node16', moduleResolution: 'node16', file: 'consumer.mts' },
    { module: 'node16', moduleResolution: 'node16', file: 'consumer.cts' },
    { module: 'esnext', moduleResolution: 'bundler', file: 'consumer.mts' },
  ])(
    'type-checks under $moduleResolution ($file), our declarations included',
    async ({ file, ...options }) => {
      await typeCheck(file, { ...options, types: ['node'] })
    },
    60_000,
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
