// `doctor`: looks for faults of a store, and says what to do.
import type { Given } from './arguments.ts'
import { Failure, plain, safeMessageOf } from './errors.ts'
import type { Output } from './output.ts'
import type { StoreUrl } from './store-url.ts'
import type { OpenStore, Sessions } from './stores.ts'

interface Finding {
  readonly text: string
  /** What to do, if something is wrong. */
  readonly todo?: string
}

interface Examination {
  readonly url: StoreUrl
  readonly given: Given
  readonly output: Output
  readonly open: () => Promise<OpenStore>
  readonly managerOf: (opened: OpenStore) => Sessions
}

const ADVICE: readonly (readonly [said: RegExp, todo: string])[] = [
  [
    /another schema/,
    'alter the table to what coatcheck ddl prints, or drop it and migrate: then everyone is logged out',
  ],
  [/ECONNREFUSED/, 'nothing listens there: start the server, or correct host and port'],
  [/ENOTFOUND|EAI_AGAIN/, 'no host has this name: correct it'],
  [/no answer within|TIMEDOUT|UNREACH/, 'the host does not answer: look at the firewall, and at host and port'],
  [
    /WRONGPASS|NOAUTH|28P01|ACCESS_DENIED_ERROR|using password|password auth|role .*does not exist/,
    'the server refuses this user or password: correct the URL',
  ],
  [/NOPERM|denied/i, 'grant this user the rights that the page of its store lists'],
  [/read.?only/i, 'this server takes no writes: name the primary'],
  [/\bOOM\b/, 'Redis is full, and logins fail: raise its maxmemory, or remove other data from it'],
  [/No space left|disk.*full|53100/i, 'the disk of the server is full: make room'],
  [/came too late/, 'set the clocks of both by NTP'],
  [/did not answer in time/, 'the server is overloaded, or another transaction holds a lock: end that, or wait for it'],
  [/database .*does not exist|Unknown database/i, 'create the database, or correct its name'],
]

/** The oldest release that each store is made for. */
const OLDEST: Readonly<Record<string, readonly [major: number, minor: number]>> = {
  PostgreSQL: [12, 0],
  MySQL: [8, 0],
  MariaDB: [10, 5],
  Redis: [6, 2],
}

/** `said` is what the server calls itself: '15.14 (Debian 15.14-0+deb12u1)', '10.11.14-MariaDB', '7.0.15'. */
export function judgeVersion(product: string, said: string): Finding {
  const [major = 0, minor = 0] = (/\d+(?:\.\d+)*/.exec(said)?.[0] ?? '').split('.').map(Number)
  const [least, lesser] = OLDEST[product] ?? [0, 0]
  const text = `${product} ${said}`
  if (major > least || (major === least && minor >= lesser)) return { text }
  return { text, todo: `update it: coatcheck needs ${product} ${least}${lesser === 0 ? '' : `.${lesser}`} or later` }
}

/** From here on a clock costs much of the five minutes by which nodes and databases may differ, in ms. */
const CLOCK_LIMIT = 60_000

function judgeClock(difference: number): Finding {
  const seconds = Math.abs(difference) / 1000
  const text = `the server's is ${seconds.toFixed(1)} s ${difference < 0 ? 'behind' : 'ahead of'} that of this machine`
  if (seconds * 1000 <= CLOCK_LIMIT) return { text }
  return { text, todo: 'set both by NTP: beyond 5 minutes logins may fail, and sessions end too early or too late' }
}

const infoOf = (info: string): ReadonlyMap<string, string> =>
  new Map([...info.matchAll(/^(\w+):(.*?)\r?$/gm)].map(([, name, value]) => [name!, value!]))

/** The faults that only a Redis can have. */
function judgeRedis(
  info: ReadonlyMap<string, string>,
  { url, given }: Examination,
): [check: string, finding: Finding][] {
  const isCluster = info.get('cluster_enabled') === '1'
  const role = info.get('role') === 'slave' ? 'a replica' : 'a primary'
  const part = `${role}${isCluster ? ' of a cluster' : ''}`
  const wrongRole =
    isCluster && url.kind === 'redis'
      ? 'name the cluster: redis+cluster://HOST:PORT,HOST:PORT'
      : !isCluster && role === 'a replica'
        ? 'name the primary'
        : null
  const [limit, policy] = [info.get('maxmemory'), info.get('maxmemory_policy')]
  const evicts = limit !== '0' && policy !== 'noeviction'
  const text = `maxmemory ${limit}, maxmemory-policy ${policy}`
  const isAllowed = !evicts || given.has('allow-eviction')
  // Not wrong by itself: a replica may do as well, and a hosted Redis does not tell.
  const persistence =
    info.get('aof_enabled') === '1'
      ? 'an append-only file'
      : 'no append-only file: a restart may log everyone out, and a crash may undo a logout'
  return [
    ['role', wrongRole === null ? { text: part } : { text: part, todo: wrongRole }],
    ['persistence', { text: persistence }],
    ['eviction', isAllowed ? { text } : { text, todo: 'set maxmemory-policy noeviction: sessions would be lost' }],
  ]
}

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
export async function doctor(asked: Examination): Promise<void> {
  const { url, output } = asked
  let [checks, wrong] = [0, 0]
  const tell = (check: string, { text, todo }: Finding): boolean => {
    checks += 1
    if (todo !== undefined) wrong += 1
    const line = `${todo === undefined ? 'ok   ' : 'WRONG'}  ${check}: ${plain(text)}`
    const object = { check, ok: todo === undefined, text, todo: todo ?? null }
    output.line(todo === undefined ? line : `${line}\n       ${todo}`, object)
    return todo === undefined
  }
  const examine = async (check: string, look: () => Promise<Finding>): Promise<boolean> => {
    try {
      return tell(check, await look())
    } catch (error) {
      const text = safeMessageOf(error, url.secrets)
      return tell(check, {
        text,
        todo: ADVICE.find(([said]) => said.test(text))?.[1] ?? 'put that right, and run coatcheck doctor again',
      })
    }
  }
  let opened!: OpenStore
  const connect = async () => {
    opened = await asked.open()
    return { text: url.name }
  }
  if (await examine('connection', connect)) {
    let facts!: Awaited<ReturnType<OpenStore['facts']>>
    const before = Date.now()
    const isAsked = await examine('version', async () => {
      facts = await opened.facts()
      return judgeVersion(/MariaDB/.test(facts.version) ? 'MariaDB' : facts.product, facts.version)
    })
    const middle = (before + Date.now()) / 2
    if (facts?.now != null) tell('clock', judgeClock(facts.now - middle))
    const ofRedis = facts?.info === undefined ? [] : judgeRedis(infoOf(facts.info), asked)
    const isFit = ofRedis.map(([check, finding]) => tell(check, finding)).every(Boolean)
    const { sql } = opened
    const hasTables =
      sql === null ||
      (await examine('tables', async () =>
        (await sql.isMigrated())
          ? { text: 'as this release needs them' }
          : {
              text: 'they are not there',
              todo: 'run coatcheck migrate, name others by --table and --schema, or grant this user rights to them',
            },
      ))
    if (isAsked && isFit && hasTables) await examine('session', () => tryOut(asked.managerOf(opened)))
  }
  await output.flush()
  if (wrong > 0) throw new Failure(`${wrong} of ${checks} checks failed`)
}
