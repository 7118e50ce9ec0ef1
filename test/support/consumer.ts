// The package as npm would deliver it, and projects that install it.
import { execFile } from 'node:child_process'
import { cpSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { delimiter, dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { build } from './scripts/build.mjs'

const exec = promisify(execFile)
export const root = fileURLToPath(new URL('../..', import.meta.url))
/** A program of test/package/tools. */
const tool = (path: string) => join(root, 'test/package/tools/node_modules', path)

/** Runs a program in a folder; npm's own `#!/usr/bin/env node`, and what it decides by the version, is this Node.js. */
const run = (program: string, args: readonly string[], cwd: string) =>
  exec(program, args, {
    cwd,
    env: { ...process.env, PATH: `${dirname(process.execPath)}${delimiter}${process.env.PATH}` },
    maxBuffer: 2 ** 26,
  })

export interface Pack {
  /** The path of the tarball. */
  readonly path: string
  /** A hash of its bytes. */
  readonly integrity: string
  /** Of the tarball, in bytes. */
  readonly size: number
  readonly files: readonly { readonly path: string; readonly size: number }[]
}

/** Builds the package where its sources are newer than the build, and packs it into a folder. */
export async function pack(folder: string): Promise<Pack> {
  await build()
  const { stdout } = await run('npm', ['pack', '--json', '--ignore-scripts', '--pack-destination', folder], root)
  const [{ filename, integrity, size, files }] = JSON.parse(stdout)
  return { path: join(folder, filename), integrity, size, files }
}

export interface Project {
  readonly folder: string
  /** What `node ARGS` prints there. */
  node(...args: string[]): Promise<string>
  /** What `npx coatcheck ARGS` prints there. */
  npx(...args: string[]): Promise<string>
  /** The same without npx. */
  command(...args: string[]): Promise<string>
  /** What Jest prints there. */
  jest(testMatch: string, ...nodeOptions: string[]): Promise<string>
}

/** A project with the programs of test/package/fixtures, two of them as ES modules too; what `install` leaves in it is all that it has. */
async function project(folder: string, install: () => Promise<unknown>): Promise<Project> {
  mkdirSync(folder, { recursive: true })
  cpSync(join(root, 'test/package/fixtures'), folder, { recursive: true })
  for (const name of ['names', 'jest.test']) {
    const code = readFileSync(join(folder, `${name}.cjs`), 'utf8').replace('require(subpath)', 'await import(subpath)')
    writeFileSync(
      join(folder, `${name}.mjs`),
      code.replaceAll(/const (\{.+\}) = require\((.+)\)/g, 'import $1 from $2'),
    )
  }
  writeFileSync(join(folder, 'package.json'), '{ "name": "consumer", "private": true, "type": "module" }\n')
  await install()
  return {
    folder,
    node: async (...args) => (await run(process.execPath, args, folder)).stdout,
    npx: async (...args) => (await run('npx', ['--no-install', 'coatcheck', ...args], folder)).stdout,
    command: async (...args) => (await run(join(folder, 'node_modules/.bin/coatcheck'), args, folder)).stdout,
    jest: async (testMatch, ...nodeOptions) => {
      const config = JSON.stringify({ transform: {}, testMatch: [testMatch] })
      const args = [...nodeOptions, tool('jest/bin/jest.js'), '--rootDir', folder, '--config', config]
      return (await run(process.execPath, args, folder)).stderr
    },
  }
}

export const npmProject = (folder: string, ...packages: string[]): Promise<Project> =>
  project(folder, () => run('npm', ['install', ...packages, '--prefer-offline', '--no-audit', '--no-fund'], folder))

export const pnpmProject = (folder: string, ...packages: string[]): Promise<Project> =>
  project(folder, () => {
    const store = join(dirname(folder), 'pnpm-store')
    return run(process.execPath, [tool('pnpm/bin/pnpm.cjs'), 'add', ...packages, '--store-dir', store], folder)
  })
