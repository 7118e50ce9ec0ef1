// The command in this process, and the built one as its users run it: in a process of its own.
import { spawn } from 'node:child_process'
import { join } from 'node:path'
import { expect } from 'vitest'
import { type Io, main } from '../../src/command/main.ts'
import { root } from './pages.ts'
import { type Running, start } from './services/process.ts'

export const COMMAND = join(root, 'dist/command.js')

export interface Ran {
  readonly code: number | null
  readonly out: string
  readonly err: string
}

interface Options {
  readonly env?: Readonly<Record<string, string>>
  readonly cwd?: string
  /** What the standard output is, where it is not collected. */
  readonly stdout?: number
  readonly program?: string
}

const environment = (env: Readonly<Record<string, string>> = {}) => {
  const { COATCHECK_STORE_URL: _, FORCE_COLOR: __, ...rest } = process.env
  return { ...rest, ...env }
}

/** Runs the command to its end, in this process. No one is there to be asked. Not read: its output is closed at once. */
export async function runCommand(
  argv: readonly string[],
  { env = {}, isRead = true }: { env?: Readonly<Record<string, string>>; isRead?: boolean } = {},
): Promise<Ran> {
  const written = { out: '', err: '' }
  const stream = (name: 'out' | 'err') => {
    const made = {
      on: () => made,
      write(text: string, done?: unknown) {
        written[name] += text
        if (typeof done === 'function') done(isRead ? null : Object.assign(new Error('EPIPE'), { code: 'EPIPE' }))
        return true
      },
    }
    return made as unknown as Io['stdout']
  }
  const code = await main(argv, { stdout: stream('out'), stderr: stream('err'), env, ask: null })
  return { code, ...written }
}

/** Runs the built command to its end. */
export function coatcheck(
  args: readonly string[],
  { env, cwd = root, stdout, program = COMMAND }: Options = {},
): Promise<Ran> {
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, [program, ...args], {
      cwd,
      env: environment(env),
      stdio: ['ignore', stdout ?? 'pipe', 'pipe'],
    })
    let [out, err] = ['', '']
    child.stdout?.on('data', chunk => {
      out += chunk
    })
    child.stderr!.on('data', chunk => {
      err += chunk
    })
    child.once('error', reject)
    child.once('close', code => resolve({ code, out, err }))
  })
}

/** Starts it, for signals; it dies with the test at the latest. */
export const startCoatcheck = (args: readonly string[], env: Readonly<Record<string, string>>): Running =>
  start(process.execPath, [COMMAND, ...args], { cwd: root, env: environment(env) })

/** The command against one store; all that it prints is kept, so that it can be searched for secrets. */
export function commandOn(url: string) {
  let printed = ''
  const run = async (...args: string[]): Promise<Ran> => {
    const ran = await runCommand(args, { env: { COATCHECK_STORE_URL: url } })
    printed += ran.out + ran.err
    return ran
  }
  return {
    run,
    printed: () => printed,
    /** What it prints where all goes well. */
    async text(...args: string[]): Promise<string> {
      const { code, out, err } = await run(...args)
      expect({ code, err: code === 0 ? '' : err }).toEqual({ code: 0, err: '' })
      return out.trimEnd()
    },
    async json(...args: string[]) {
      const { code, out, err } = await run(...args, '--json')
      expect({ code, err }).toEqual({ code: 0, err: '' })
      return out
        .split('\n')
        .filter(Boolean)
        .map(line => JSON.parse(line))
    },
  }
}
