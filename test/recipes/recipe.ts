// Starts a recipe of examples/ as its package.json says, with a store and a clock that the test rules.
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import ts from 'typescript'
import { programs } from '../support/compiler.ts'
import { CHEAP } from '../support/example-service.ts'
import { freePort, start, until } from '../support/services/process.ts'

/** For those in plain JavaScript. */
const PLAIN = { strict: true, skipLibCheck: true, allowJs: true, target: 'es2023', module: 'nodenext' }
const root = fileURLToPath(new URL('../../', import.meta.url))
const preload = join(root, 'test/recipes/control.mjs')

export interface RunningRecipe {
  readonly url: string
  output(): string
  /** What the store, the clock and a login do from now on; nothing said: as always. `breaks`: what its error has. */
  control(state: { isDown?: boolean; ahead?: number; breaks?: object }): void
  stop(): Promise<void>
}

/** A program in the packages of this platform that a recipe installed: what npm installs without running scripts. */
export function programOf(name: string, scope: string, path: string): string {
  const folder = join(folderOf(name), 'node_modules', scope)
  return join(folder, readdirSync(folder)[0]!, path)
}

export const folderOf = (name: string) => join(root, 'examples', name)

/** A copy of a recipe whose password hashes are cheap, for a runtime in which no preloaded module can make them so. */
function cheapCopyOf(name: string): string {
  mkdirSync(join(root, '.tmp'), { recursive: true })
  const folder = mkdtempSync(join(root, '.tmp/recipe-'))
  const modules = join(folderOf(name), 'node_modules')
  cpSync(folderOf(name), join(folder, name), { recursive: true, filter: path => path !== modules })
  symlinkSync(modules, join(folder, name, 'node_modules'))
  mkdirSync(join(folder, 'server'))
  const cost = JSON.stringify(CHEAP)
  writeFileSync(
    join(folder, 'server/users.mjs'),
    `import { openUsers as open } from '../../../examples/server/users.mjs'\nexport const openUsers = () => open(${cost})\n`,
  )
  return folder
}

/** What the script does, without npm between us and the process. @returns its program and arguments */
function startOf(folder: string): string[] {
  const { scripts } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'))
  const [program, ...args] = (scripts.start as string).split(' ')
  // Everything else is a program of a package that the recipe installed, and written for node too.
  const file = program === 'node' ? [] : [join(folder, 'node_modules/.bin', program!)]
  return [process.execPath, '--import', preload, ...file, ...args]
}

/**
 * Runs the recipe on a free port until `stop`.
 * @param command in place of `npm start`: another runtime, the control preloaded
 */
export async function startRecipe(
  name: string,
  {
    command,
    env = () => ({}),
  }: {
    command?: (preload: string, port: number) => string[]
    env?: (url: string) => Record<string, string>
  } = {},
): Promise<RunningRecipe> {
  const copy = command ? cheapCopyOf(name) : null
  const cwd = copy ? join(copy, name) : folderOf(name)
  const folder = mkdtempSync(join(tmpdir(), 'coatcheck-recipe-'))
  const file = join(folder, 'control.json')
  const control: RunningRecipe['control'] = state => {
    writeFileSync(`${file}.new`, JSON.stringify(state))
    renameSync(`${file}.new`, file) // the recipe never reads half of it
  }
  control({})
  const port = await freePort()
  const [program, ...args] = command?.(preload, port) ?? startOf(cwd)
  const url = `http://127.0.0.1:${port}`
  const running = start(program!, args, { cwd, env: { ...process.env, PORT: `${port}`, CONTROL: file, ...env(url) } })
  try {
    await until(`${name} listens`, () => fetch(url).then(response => response.text()), { server: running })
  } catch (error) {
    await running.stop('SIGKILL')
    throw error
  }
  return {
    url,
    output: running.output,
    control,
    async stop() {
      await running.stop()
      rmSync(folder, { recursive: true })
      if (copy) rmSync(copy, { recursive: true })
    },
  }
}

/** What TypeScript says about a recipe, with the packages that the recipe installed: '' where all is right. */
export function problemsOf(name: string): string {
  const folder = folderOf(name)
  const config = join(folder, 'tsconfig.json')
  const own = existsSync(config)
    ? ts.readConfigFile(config, ts.sys.readFile).config
    : { compilerOptions: { ...PLAIN, types: ['node'] }, files: ['app.mjs'] }
  const { options, fileNames, errors } = ts.parseJsonConfigFileContent(own, ts.sys, folder, { noEmit: true }, config)
  const problems = [...errors, ...ts.getPreEmitDiagnostics(programs(options)(fileNames))]
  return ts.formatDiagnostics(problems, ts.createCompilerHost(options))
}
