// `doctor`: looks for faults of a store, and says what to do.
import type { Given } from './arguments.ts'
import { Failure, plain, safeMessageOf, usageIn } from './errors.ts'
import type { Output } from './output.ts'
import type { StoreUrl } from './store-url.ts'
import type { OpenStore, Sessions } from './stores.ts'
import { NO_ANSWER, type TimeLimit } from './time-limit.ts'

/** A risk is of nothing that fails today. */
type Verdict = 'ok' | 'RISK' | 'WRONG'

interface Finding {
  readonly text: string
  /** What to do, if something is wrong or a risk. */
  readonly todo?: string | undefined
  /** By default 'WRONG' if there is something to do. */
  readonly verdict?: Verdict
}

interface Examination {
  readonly url: StoreUrl
  readonly given: Given
  readonly output: Output
  readonly limit: TimeLimit
  readonly open: () => Promise<OpenStore>
  readonly managerOf: (opened: OpenStore) => Sessions
}

const WRONG_LOGIN = 'the server refuses this user or password: correct the URL'
const ADVICE: readonly (readonly [said: RegExp, todo: string])[] = [
  [/another schema/, 'make the table as coatcheck ddl prints it, or drop it and migrate: that logs everyone out'],
  [/ECONNREFUSED/, 'nothing listens there: start the server, or correct host and port'],
  [/ENOTFOUND|EAI_AGAIN/, 'no host has this name: correct it'],
  [/\(connection\)|TIMEDOUT|Connection timeout|UNREACH/, 'the host is silent: check the firewall, host and port'],
  [/WRONGPASS|NOAUTH|28P01|ACCESS_DENIED_ERROR|using password|password auth|role .*does not exist/, WRONG_LOGIN],
  [/NOPERM|denied/i, 'grant this user the rights that the page of its store lists'],
  [/read.?only/i, 'this server takes no writes: name the primary'],
  [/\bOOM\b/, 'Redis is full, and logins fail: raise its maxmemory, or remove other data from it'],
  [/No space left|disk.*full|53100/i, 'the disk of the server is full: make room'],
  [/came too late/, 'set the clocks of both by NTP'],
  [/no answer|in time|no time|deadline/, 'the server is overloaded, or another holds a lock: end that, or wait for it'],
  [/database .*does not exist|Unknown database/i, 'create the database, or correct its name'],
]

/** The oldest release that each store is made for. */
const OLDEST: Record<string, string> = { PostgreSQL: '12', MySQL: '8', MariaDB: '10.5', Redis: '6.2' }

/** `said` is what the server calls itself: '15.14 (Debian 15.14-0+deb12u1)', '10.11.14-MariaDB', '7.0.15'. */
export function judgeVersion(product: string, said: string): Finding {
  const oldest = OLDEST[product] ?? ''
  const text = `${product} ${said}`
  if (said.localeCompare(oldest, 'en', { numeric: true }) >= 0) return { text }
  return { text, todo: `update it: coatcheck needs ${product} ${oldest} or later` }
}

/** From here on a clock costs much of the five minutes by which nodes and databases may differ, in s. */
const CLOCK_LIMIT = 60

function judgeClock(difference: number): Finding {
  const seconds = Math.abs(difference) / 1000
  const text = `the server's is ${seconds.toFixed(1)} s ${difference < 0 ? 'behind' : 'ahead of'} that of this machine`
  if (seconds <= CLOCK_LIMIT) return { text }
  return { text, todo: 'set both by NTP: beyond 5 minutes logins may fail, and sessions end too early or too late' }
}

const infoOf = (info: string): ReadonlyMap<string, string> =>
  new Map([...info.matchAll(/^(\w+):(.*?)\r?$/gm)].map(([, name, value]) => [name!, value!]))

function judgeRole(info: ReadonlyMap<string, string>, { kind }: StoreUrl): Finding {
  const isReplica = info.get('role') === 'slave'
  const role = isReplica ? 'a replica' : 'a primary'
  if (info.get('cluster_enabled') !== '1') return { text: role, todo: isReplica ? 'name the primary' : undefined }
  const todo = kind === 'redis' ? 'name the cluster: redis+cluster://HOST:PORT,HOST:PORT' : undefined
  return { text: `${role} of a cluster`, todo }
}

// Not wrong by itself: a replica may do as well, and a hosted Redis does not tell.
const NO_FILE: Finding = {
  verdict: 'RISK',
  text: 'no append-only file: a restart may log everyone out, and a crash may undo a logout',
  todo: 'set appendonly yes, unless replicas or the host keep the sessions',
}

function judgeEviction(info: ReadonlyMap<string, string>, given: Given): Finding {
  const [limit, policy] = [info.get('maxmemory'), info.get('maxmemory_policy')]
  const text = `maxmemory ${limit}, maxmemory-policy ${policy}`
  if (limit === '0' || policy === 'noeviction') return { text }
  const todo = 'set maxmemory-policy noeviction: sessions would be lost'
  return { text, todo, verdict: given.has('allow-eviction') ? 'RISK' : 'WRONG' }
}

const NO_TABLES = 'run coatcheck migrate, name others by --table and --schema, or grant this user rights to them'

const USER = 'coatcheck doctor'

/** Does the calls of an application, with a user of our own. */
async function tryOut(sessions: Sessions): Promise<Finding> {
  const begun = performance.now()
  const session = await sessions.create({ user: { id: USER, name: '' } })
  const found = await sessions.get(session.secret)
  const changed = found && (await sessions.update(found, { tried: true }))
  const ended = await sessions.invalidateUser(USER)
  if (changed === null || ended === 0)
    throw new Failure('a session that was written is not found: read from the primary')
  return { text: `one was written, read, changed and ended in ${Math.ceil(performance.now() - begun)} ms` }
}

/** @throws Failure if something is wrong */
export async function doctor({ url, given, output, limit, open, managerOf }: Examination): Promise<void> {
  const found: Record<Verdict, string[]> = { ok: [], RISK: [], WRONG: [] }
  let isSilent = false
  const tell = (check: string, { text, todo, verdict = todo === undefined ? 'ok' : 'WRONG' }: Finding): void => {
    found[verdict].push(check)
    const line = `${verdict.padEnd(5)}  ${check}: ${plain(text)}${todo === undefined ? '' : `\n       ${todo}`}`
    output.line(line, { check, verdict: verdict.toLowerCase(), text, todo: todo ?? null })
  }
  /** Answers what was looked at; `null` if that failed. */
  const examine = async <T>(check: string, look: () => Promise<T>, judge: (seen: T) => Finding): Promise<T | null> => {
    try {
      const seen = await limit.ask(check, look())
      tell(check, judge(seen))
      return seen
    } catch (error) {
      if (usageIn(error) !== null) throw error
      const text = safeMessageOf(error, url.secrets)
      isSilent ||= text.startsWith(NO_ANSWER)
      const known = ADVICE.find(([said]) => said.test(text))
      tell(check, { text, todo: known?.[1] ?? 'put that right, and run coatcheck doctor again' })
      return null
    }
  }
  const opened = await examine('connection', open, () => ({ text: url.name }))
  if (opened !== null) {
    const { sql, facts } = opened
    const before = Date.now()
    const said = await examine('version', facts, ({ product, version }) => judgeVersion(product, version))
    const middle = (before + Date.now()) / 2
    if (said?.now != null) tell('clock', judgeClock(Number(said.now) - middle))
    if (said?.info !== undefined) {
      const info = infoOf(said.info)
      tell('role', judgeRole(info, url))
      tell('persistence', info.get('aof_enabled') === '1' ? { text: 'an append-only file' } : NO_FILE)
      tell('eviction', judgeEviction(info, given))
    }
    const areThere = (isMigrated: boolean) =>
      isMigrated ? { text: 'as this release needs them' } : { text: 'they are not there', todo: NO_TABLES }
    if (sql !== null && !isSilent) await examine('tables', () => sql.isMigrated(), areThere)
    // By a clock that is wrong all may be well.
    if (found.WRONG.every(check => check === 'clock')) {
      const look = () => tryOut(managerOf(opened))
      await examine('session', look, trial => trial)
    }
  }
  await output.flush()
  const counts = Object.entries(found).flatMap(([verdict, checks]) => {
    const names = verdict === 'ok' ? '' : ` (${checks.join(', ')})`
    return checks.length === 0 ? [] : `${checks.length} ${verdict}${names}`
  })
  const text = `${counts.join(', ')}${isSilent ? ', and the rest was not asked' : ''}`
  if (found.WRONG.length > 0) throw new Failure(text)
  output.note(text)
}
