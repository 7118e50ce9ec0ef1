import { createRequire } from 'node:module'
import { setTimeout as wait } from 'node:timers/promises'
import { SessionManager } from 'coatcheck'
import { checkKind, HELP, minPasswordVersionOf, parseArguments, type Run, timeoutOf } from './arguments.ts'
import { EXIT, type ExitCode, Failure, plain, safeMessageOf, UsageError } from './errors.ts'
import { Output, OutputClosed, OutputFailed, type Stream } from './output.ts'
import { kindIn, parseStoreUrl } from './store-url.ts'
import { ddlOf, type OpenStore, openStore } from './stores.ts'
import { type Ending, RUN, type Task } from './verbs.ts'

/** What the command has around it: the process, or a test. */
export interface Io {
  readonly out: Stream
  readonly err: Stream
  readonly env: Readonly<Record<string, string | undefined>>
  /** Asks a person; `null` if no one is there. */
  readonly ask: ((question: string, signal: AbortSignal) => Promise<string>) | null
  onSignal(signal: 'SIGINT' | 'SIGTERM', stop: () => void): void
  /** Ends the process at once. */
  exit(code: ExitCode): void
}

/** How long a database may take to say good-bye, in ms. */
const CLOSING = 2000
/** One press of Ctrl-C under npx comes twice, from the terminal and from npm: within so many ms it is the same. */
const SAME_PRESS = 500

/** Runs one command line, and answers what the process ends with. */
export async function coatcheck(argv: readonly string[], io: Io): Promise<ExitCode> {
  let output = new Output(io.out, io.err, false)
  const interrupts = new Interrupts(io, text => output.say(text))
  try {
    const asked = parseArguments(argv)
    if (asked === 'help' || asked === 'version') {
      await output.result(asked === 'help' ? HELP : versionOf(), {})
      return EXIT.done
    }
    output = new Output(io.out, io.err, asked.given.has('json'))
    const ending = await (asked.command === 'ddl'
      ? ddl(asked, output, io)
      : work(asked.command, asked, output, io, interrupts))
    return ending === 'done' ? EXIT.done : (interrupts.code ?? EXIT.interrupted)
  } catch (error) {
    // Its reader has all it wants.
    if (error instanceof OutputClosed) return interrupts.code ?? EXIT.done
    const isOurs = error instanceof UsageError || error instanceof Failure
    output.say(`coatcheck: ${isOurs ? error.message : safeMessageOf(error, [])}`)
    if (!(error instanceof UsageError)) return interrupts.code ?? EXIT.failed
    output.say('See coatcheck --help.')
    return EXIT.usage
  }
}

const versionOf = (): string => createRequire(import.meta.url)('../package.json').version

/**
 * The first signal asks the work to stop if it can be repeated, the second ends the process at once. Before any work the
 * first one does.
 */
class Interrupts {
  readonly #controller = new AbortController()
  readonly #io: Io
  readonly #say: (text: string) => void
  #isWorking = false
  #at = 0
  /** What to end with, if a signal came. */
  code: ExitCode | null = null

  constructor(io: Io, say: (text: string) => void) {
    this.#io = io
    this.#say = say
    io.onSignal('SIGINT', () => this.#stop(EXIT.interrupted))
    io.onSignal('SIGTERM', () => this.#stop(EXIT.terminated))
  }

  /** From now on what is under way is finished first. */
  begin(): AbortSignal {
    this.#isWorking = true
    return this.#controller.signal
  }

  #stop(code: ExitCode): void {
    const now = performance.now()
    if (!this.#isWorking) this.#io.exit(code)
    else if (this.code === null) {
      this.code = code
      this.#at = now
      this.#say('Interrupted: the call under way is finished first; a second signal ends at once.')
      this.#controller.abort()
    } else if (now - this.#at > SAME_PRESS) this.#io.exit(this.code)
  }
}

function storeNamed({ given }: Run, { env }: Io): { text: string; source: string } {
  const option = given.get('store')
  if (option !== undefined) return { text: option, source: '--store' }
  const text = env.COATCHECK_STORE_URL
  if (text) return { text, source: 'COATCHECK_STORE_URL' }
  throw new UsageError('no store is named: set COATCHECK_STORE_URL, or give --store URL')
}

const kindOf = (kind: string) => (kind.startsWith('redis') ? 'Redis' : 'SQL stores')

/** Prints the DDL, for which no store is opened. */
async function ddl(run: Run, output: Output, io: Io): Promise<Ending> {
  const { text, source } = storeNamed(run, io)
  const kind = kindIn(text, source)
  checkKind(run.given, kindOf(kind))
  const printed = ddlOf(kind, run.given)
  if (printed === null && !output.json) output.say('Redis needs no tables.')
  else await output.result((printed ?? '').trimEnd(), { ddl: printed })
  return 'done'
}

/** Opens the store, runs the command, and closes it again. */
async function work(
  command: keyof typeof RUN,
  run: Run,
  output: Output,
  io: Io,
  interrupts: Interrupts,
): Promise<Ending> {
  const { given, user, key } = run
  const { text, source } = storeNamed(run, io)
  const url = parseStoreUrl(text, source, { schema: given.get('schema') ?? '', env: io.env })
  checkKind(given, kindOf(url.kind))
  const timeout = timeoutOf(given)
  const minPasswordVersion = minPasswordVersionOf(given)
  const { ask } = io
  if (command === 'invalidate-all' && !given.has('yes') && ask === null)
    throw new UsageError(`${command} logs users out, and no one is here to be asked: give --yes`)
  const name = plain(url.name)
  let opened: OpenStore | null = null
  try {
    opened = await openStore({ url, given, timeout, makes: command === 'migrate' })
    const { store, sql } = opened
    if (command !== 'migrate' && sql !== null && !(await sql.isMigrated()))
      throw new Failure('the tables are not there: coatcheck migrate creates them; --table and --schema name others')
    const sessions = managerOf(store, timeout, given.get('namespace'))
    const signal = interrupts.begin()
    return await RUN[command]({
      ...{ given, user, key, name, store, sql, sessions, timeout, minPasswordVersion, output, signal },
      ask: async question => (ask === null ? '' : ask(question, signal)),
    })
  } catch (error) {
    if (error instanceof UsageError || error instanceof OutputClosed || error instanceof OutputFailed) throw error
    const message = safeMessageOf(error, url.secrets).replaceAll(/pass allowEviction: true/g, 'give --allow-eviction')
    const isUnknown = (error as { outcome?: unknown }).outcome === 'unknown'
    throw new Failure(
      `${name}: ${message}${isUnknown ? ' (it may have been done in part: run the command again)' : ''}`,
    )
  } finally {
    if (opened !== null) await close(opened)
  }
}

function managerOf(store: OpenStore['store'], timeout: number, namespace: string | undefined): Task['sessions'] {
  const sessions: Task['sessions'] = new SessionManager({
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
const close = (opened: OpenStore): Promise<unknown> =>
  Promise.race([(async () => opened.close())().catch(() => {}), wait(CLOSING, undefined, { ref: false })])
