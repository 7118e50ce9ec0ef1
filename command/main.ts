#!/usr/bin/env node
import { createRequire } from 'node:module'
import { createInterface } from 'node:readline/promises'
import { SessionManager } from 'coatcheck'
import { type Asked, parseArguments } from './arguments.ts'
import { type Ending, EXIT, type ExitCode, Failure, UsageError } from './exit.ts'
import { helpOf } from './help.ts'
import { Interrupts } from './interrupts.ts'
import { plain, safeMessageOf } from './messages.ts'
import { type OpenStore, openStore, schemaOf } from './open-store.ts'
import { checkKind, numberOf, timeoutOf } from './options.ts'
import { Output, OutputClosed, OutputFailed } from './output.ts'
import { Progress } from './progress.ts'
import { parseStoreUrl, schemeOf } from './store-url.ts'
import type { Sessions } from './task.ts'

/** How long a database may take to say good-bye, in ms. */
const CLOSING = 2000

type Run = Extract<Asked, { do: 'run' }>

function storeNamed({ given }: Run): { text: string; source: string } {
  const option = given.get('store')
  if (option !== undefined) return { text: option, source: '--store' }
  const text = process.env.COATCHECK_STORE_URL
  if (text) return { text, source: 'COATCHECK_STORE_URL' }
  throw new UsageError('no store is named: set COATCHECK_STORE_URL, or give --store URL')
}

const isInteractive = () => process.stdin.isTTY === true && process.stderr.isTTY === true

/** Asks the person at the terminal; '' where a signal comes instead of an answer. */
async function ask(question: string, signal: AbortSignal): Promise<string> {
  const reader = createInterface({ input: process.stdin, output: process.stderr })
  // Read by readline, Ctrl-C is no signal.
  reader.once('SIGINT', () => process.kill(process.pid, 'SIGINT'))
  // The end of the input (Ctrl-D) leaves the question without an answer.
  const closed = new Promise<string>(resolve => reader.once('close', () => resolve('')))
  try {
    return await Promise.race([reader.question(`${question} `, { signal }).catch(() => ''), closed])
  } finally {
    reader.close()
  }
}

async function schema(run: Run, output: Output): Promise<Ending> {
  const { text, source } = storeNamed(run)
  const { kind } = schemeOf(text, source)
  checkKind(run.given, !kind.startsWith('redis'))
  const ddl = schemaOf(kind, run.given)
  if (ddl === null && !output.json) output.say('Redis needs no schema.')
  if (ddl !== null || output.json) await output.result((ddl ?? '').trimEnd(), { schema: ddl })
  return 'done'
}

async function work(run: Run, output: Output, interrupts: Interrupts): Promise<Ending> {
  const { command, given, user, key } = run
  const { text, source } = storeNamed(run)
  const url = parseStoreUrl(text, source, { schema: given.get('schema') ?? '' })
  checkKind(given, !url.kind.startsWith('redis'))
  const timeout = timeoutOf(given)
  if (command.options.includes('yes') && !given.has('yes') && !isInteractive())
    throw new UsageError(`${command.name} logs users out, and no one is here to be asked: give --yes`)
  numberOf(given, 'wait-replicas', 100)
  numberOf(given, 'password-version', 0xffff_ffff)
  const progress = new Progress(process.stderr, { json: output.json })
  let opened: OpenStore | null = null
  try {
    opened = await openStore({ url, given, timeout, makes: command.needs === 'database' })
    const { store, sql } = opened
    if (command.needs === 'tables' && sql !== null && !(await sql.isMigrated()))
      throw new Failure('the tables are not there: coatcheck migrate creates them; --table and --schema name others')
    const sessions = managerOf(store, timeout, given.get('namespace'))
    interrupts.begin()
    const { signal } = interrupts
    const task = { given, user, key, name: plain(url.name), store, sql, sessions, timeout, output, progress, signal }
    return await command.run!({ ...task, ask: question => ask(question, signal) })
  } catch (error) {
    if (error instanceof UsageError || error instanceof OutputClosed || error instanceof OutputFailed) throw error
    const message = safeMessageOf(error, url.secrets).replaceAll(/pass allowEviction: true/g, 'give --allow-eviction')
    const { outcome } = error as { outcome?: unknown }
    const unknown = outcome === 'unknown' ? ' (it may have been done in part: run the command again)' : ''
    throw new Failure(`${plain(url.name)}: ${message}${unknown}`)
  } finally {
    progress.clear()
    if (opened !== null) await close(opened)
  }
}

function managerOf(store: OpenStore['store'], timeout: number, namespace: string | undefined): Sessions {
  const sessions: Sessions = new SessionManager({
    store,
    userIds: 'string',
    storeTimeout: `${timeout}ms`,
    sweepInterval: false,
    // So that revoke ends the remember tokens of the device, whatever lifetime the application gives them.
    rememberFor: '400d',
  })
  try {
    return namespace === undefined ? sessions : sessions.namespace(namespace)
  } catch (error) {
    throw new UsageError(`--${(error as Error).message}`)
  }
}

/** A database that does not answer must not keep the command. */
async function close({ close }: OpenStore): Promise<void> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<void>(resolve => {
    timer = setTimeout(resolve, CLOSING)
  })
  await Promise.race([
    Promise.resolve()
      .then(close)
      .catch(() => {}),
    late,
  ])
  clearTimeout(timer)
}

async function main(argv: readonly string[]): Promise<ExitCode> {
  const say = (text: string) => output.say(text)
  let output = new Output(process.stdout, process.stderr, false)
  const interrupts = new Interrupts(say)
  let help = 'coatcheck --help'
  try {
    const asked = parseArguments(argv)
    if (asked.do === 'help') await output.result(helpOf(asked.command), {})
    if (asked.do === 'version')
      await output.result(createRequire(import.meta.url)('../package.json').version as string, {})
    if (asked.do !== 'run') return EXIT.done
    help = `coatcheck ${asked.command.name} --help`
    output = new Output(process.stdout, process.stderr, asked.given.has('json'))
    const ending = await (asked.command.needs === 'kind' ? schema(asked, output) : work(asked, output, interrupts))
    return ending === 'done' ? EXIT.done : (interrupts.code ?? EXIT.interrupted)
  } catch (error) {
    // Its reader has all it wants.
    if (error instanceof OutputClosed) return interrupts.code ?? EXIT.done
    output.say(
      `coatcheck: ${error instanceof UsageError || error instanceof Failure ? error.message : messageOfWrite(error)}`,
    )
    if (!(error instanceof UsageError)) return interrupts.code ?? EXIT.failed
    output.say(`See ${help}.`)
    return EXIT.usage
  }
}

const messageOfWrite = (error: unknown) => safeMessageOf(error, [])

process.exitCode = await main(process.argv.slice(2))
// Whatever a driver keeps open.
setTimeout(() => process.exit(), CLOSING).unref()
