// Projects that installed the packed package, and what they run. `npm run test:nodes` does this on each Node.js.
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { npmProject, type Pack, type Project, pack, pnpmProject, root } from '../support/consumer.ts'

const manifest = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
const subpaths = Object.keys(manifest.exports)
  .filter(key => key !== './package.json')
  .map(key => key.replace('.', 'coatcheck'))

let folder: string
let packed: Pack
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'coatcheck-consumers-'))
  packed = await pack(folder)
}, 240_000)
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const installed = new Map<string, Promise<Project>>()
/** A project that has installed the package and nothing else, once for each name. */
function projectWithPackage(name: string): Promise<Project> {
  const project = installed.get(name) ?? npmProject(join(folder, name), packed.path)
  installed.set(name, project)
  return project
}

/** Of the versions of Node.js beside the first, npm shows what is different: how they load what it installed. */
const isOtherNode = process.env.COATCHECK_OTHER_NODE === '1'
// Cookie 2 is ESM only: neither Jest nor Node.js before 20.19 and 22.12 can `require` it.
const KINDS: readonly (readonly [name: string, install: () => Promise<Project>, cookie: RegExp])[] = [
  ['an empty project', () => projectWithPackage('alone'), /^1\./],
  ['a project with cookie 2, by npm', () => npmProject(join(folder, 'npm'), 'cookie@2', packed.path), /^2\./],
  ['a project with cookie 2, by pnpm', () => pnpmProject(join(folder, 'pnpm'), 'cookie@2', packed.path), /^2\./],
]
describe.each(isOtherNode ? KINDS.slice(0, 2) : KINDS)('%s', { timeout: 120_000 }, (_, install, cookie) => {
  let project: Project
  beforeAll(async () => {
    project = await install()
  }, 240_000)

  it('has that cookie in its node_modules', () => {
    const manifest = readFileSync(join(project.folder, 'node_modules/cookie/package.json'), 'utf8')
    expect(JSON.parse(manifest).version).toMatch(cookie)
  })

  it('logs a user in and out, gets the same from every subpath with import and with require, by the names that classes and functions show, and ends by itself', async () => {
    const [imported, required] = (await Promise.all(
      ['names.mjs', 'names.cjs'].map(async program => JSON.parse(await project.node(program, ...subpaths))),
    )) as [{ user: unknown[]; names: Record<string, Record<string, string>> }, unknown]
    expect(Object.keys(imported.names)).toEqual(subpaths)
    expect(required).toEqual(imported)
    expect(imported.user).toEqual(['ada', null])
    for (const [subpath, names] of Object.entries(imported.names)) {
      expect(names).not.toEqual({})
      for (const [name, shown] of Object.entries(names))
        if (!['object', 'number', 'string', 'symbol'].includes(shown))
          expect(`${subpath}: ${shown}`).toBe(`${subpath}: ${name}`)
    }
  })

  it('runs its command by npx, and without', async () => {
    const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
    expect(await project.npx('--version')).toBe(`${version}\n`)
    expect(await project.command('ddl', '--store', 'postgres:')).toMatch(
      /^CREATE TABLE IF NOT EXISTS "coatcheck_sessions" \(\n/,
    )
  })

  it('works in Jest, with require', async () => {
    expect(await project.jest('**/jest.test.cjs')).toMatch(/Tests: +1 passed, 1 total/)
  })

  it('works in Jest, with import', async () => {
    expect(await project.jest('**/jest.test.mjs', '--experimental-vm-modules')).toMatch(/Tests: +1 passed, 1 total/)
  })
})

it('lets copies of the package in one process understand each other: two folders, ESM and CommonJS', async () => {
  const [one, other] = await Promise.all(['alone', 'other'].map(projectWithPackage))
  expect(await one!.node('copies.mjs', other!.folder)).toBe('64\n')
}, 240_000)

it('brings one dependency, cookie, into an empty project', async () => {
  await projectWithPackage('alone')
  const lock = JSON.parse(readFileSync(join(folder, 'alone/package-lock.json'), 'utf8'))
  expect(Object.keys(lock.packages).sort()).toEqual(['', 'node_modules/coatcheck', 'node_modules/cookie'])
})
