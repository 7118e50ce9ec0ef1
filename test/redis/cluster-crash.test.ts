import type { SessionRecord } from 'coatcheck/custom-store'
import { RedisStore } from 'coatcheck/stores/redis'
import fc from 'fast-check'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { within } from '../support/deadlines.ts'
import { CLUSTER, type OpenClient } from '../support/redis/clients.ts'
import { HOUR, recordOf, soon, T0, writeId } from '../support/redis/records.ts'
import { describeEngine } from '../support/services/engines.ts'
import { type RedisCluster, sharedRedisCluster } from '../support/services/redis.ts'

const LONG = process.env.COATCHECK_LONG === '1'
const call = () => ({ now: T0, deadline: soon() })
const never = new Promise<never>(() => {})
let users = 1000

/** Which command of a call is the process's last, and whether it arrived. */
interface Crash {
  readonly command: number
  readonly isSent: boolean
}

/**
 * The client of a process that dies: it hears no answer to its last command and sends nothing after it. `before` is
 * called before each command, with its number.
 */
function dying(client: any, crash: Crash, before: (command: number) => Promise<unknown>) {
  let command = 0
  let isDead = false
  let die: (value: 'dead') => void
  const died = new Promise<'dead'>(resolve => {
    die = resolve
  })
  const run = async (send: () => Promise<unknown>) => {
    command++
    const number = command
    if (isDead) return never
    await before(number)
    if (number !== crash.command) return send()
    isDead = true
    if (crash.isSent) await send().catch(() => {})
    die('dead')
    return never
  }
  const wrapped = {
    isOpen: true,
    isReady: true,
    isCluster: true,
    status: 'ready',
    options: client.options,
    masters: client.masters,
    nodes: (role: string) => client.nodes(role),
    nodeClient: (node: unknown) => client.nodeClient(node),
    get slots() {
      return client.slots
    },
    ...(typeof client.call === 'function'
      ? { call: (...args: unknown[]) => run(() => client.call(...args)) }
      : { sendCommand: (...args: unknown[]) => run(() => client.sendCommand(...args)) }),
  }
  return { client: wrapped as never, died }
}

describeEngine('redis', 'a process that dies during a login from a session on another slot', () => {
  let cluster: RedisCluster
  let open: OpenClient
  let witness: RedisStore
  beforeAll(async () => {
    cluster = await sharedRedisCluster()
    open = await CLUSTER['node-redis 6 cluster']!(cluster.addresses)
    witness = new RedisStore(open.client)
  })
  afterAll(async () => {
    await open.close()
    await cluster.stop()
  })

  const live = async (key: string) => {
    const found = await witness.read(key, call())
    return found !== null && 'key' in found ? found : null
  }
  const listed = async (userId: string) => (await witness.listUser(userId, 'session', call())).map(({ key }) => key)

  /** What others do meanwhile: each is told the old session, the new record, and the two users. */
  interface Scene {
    readonly ada: string
    readonly max: string
    readonly old: SessionRecord
    readonly next: SessionRecord
    /** What was acknowledged to a process that is still running. */
    readonly held: Set<string>
  }
  const meanwhile = {
    'end ada’s sessions': ({ ada }: Scene) => witness.deleteUser(ada, { minPasswordVersionUntil: T0 }, call()),
    'change ada’s password': ({ ada }: Scene) =>
      witness.deleteUser(ada, { minPasswordVersion: 9, minPasswordVersionUntil: T0 + HOUR }, call()),
    'end max’s sessions': ({ max }: Scene) => witness.deleteUser(max, { minPasswordVersionUntil: T0 }, call()),
    'log the old ID out': ({ old }: Scene) => witness.delete(old.key, call()),
    'write to the old session': ({ old }: Scene) =>
      witness.update(old.key, 1, { data: '1', seenAt: T0, expiresAt: T0 + HOUR, writeId: writeId() }, call()),
    'look at ada’s devices': ({ ada }: Scene) => listed(ada),
    'log ada in elsewhere': async ({ ada, held }: Scene) => {
      const record = recordOf(witness, ada, { createdAt: T0 + 1 })
      const outcome = await witness.create(record, call())
      if (outcome === 'created') held.add(record.key)
    },
    'log max in from the same ID': async ({ max, old, held }: Scene) => {
      const record = recordOf(witness, max, { createdAt: T0 + 2 })
      const outcome = await witness.replace(old.key, 1, record, {}, call())
      if (outcome === 'created') held.add(record.key)
    },
    'repeat the call': async ({ old, next, held }: Scene) => {
      const outcome = await witness.replace(old.key, 1, next, {}, call())
      if (outcome === 'created') held.add(next.key)
      return outcome
    },
    'log the new ID out': ({ next }: Scene) => witness.delete(next.key, call()),
    nothing: async () => {},
  }
  type Deed = keyof typeof meanwhile
  const deed = fc.constantFrom(...(Object.keys(meanwhile) as Deed[]))

  /** What must hold at every moment, whichever process died. */
  async function check(scene: Scene): Promise<void> {
    const { old, next, ada, held } = scene
    const [before, after] = [await live(old.key), await live(next.key)]
    expect(
      before !== null && after !== null && held.has(next.key),
      'a client has the new ID, and the old one lives',
    ).toBe(false)
    for (const key of await listed(ada)) {
      expect(held.has(key) || key === next.key, 'a session that nobody began is in the list').toBe(true)
      expect(await live(key)).not.toBe(null)
    }
  }

  it('such a login is three commands', async () => {
    const sent: number[] = []
    const { client } = dying(open.client, { command: 0, isSent: true }, async command => sent.push(command))
    const store = new RedisStore(client, { allowEviction: true })
    for (let i = 0; i < 40; i++) {
      const old = recordOf(store, null)
      await store.create(old, call())
      sent.length = 0
      const login = recordOf(store, String(users++))
      expect(await store.replace(old.key, 1, login, {}, call())).toBe('created')
      // The first ones load the scripts on each master.
      if (i >= 30) expect(sent).toHaveLength(3)
      expect([await live(old.key), await live(login.key)]).toEqual([null, login])
    }
  })

  it('leaves no old session beside a new one whose ID a client has, whatever others do meanwhile', {
    timeout: 600_000,
  }, async () => {
    const outcomes = new Map<string, number>()
    const story = fc.record({
      isMax: fc.boolean(),
      others: fc.nat(2),
      crash: fc.record({ command: fc.integer({ min: 1, max: 6 }), isSent: fc.boolean() }),
      deeds: fc.array(deed, { minLength: 5, maxLength: 5 }),
      afterwards: fc.array(deed, { maxLength: 4 }),
    })
    const property = fc.asyncProperty(story, async ({ isMax, others, crash, deeds, afterwards }) => {
      const [ada, max] = [String(users++), String(users++)]
      const old = recordOf(witness, isMax ? max : null)
      const next = recordOf(witness, ada, { passwordVersion: 1, createdAt: T0 + 3 })
      const held = new Set<string>([old.key])
      const scene: Scene = { ada, max, old, next, held }
      await witness.create(old, call())
      for (let i = 0; i < others; i++) {
        const record = recordOf(witness, ada, { passwordVersion: 9, createdAt: T0 - 10 + i })
        await witness.create(record, call())
        held.add(record.key)
      }
      const { client, died } = dying(open.client, crash, async command => {
        await meanwhile[deeds[command - 1] ?? 'nothing'](scene)
        await check(scene)
      })
      const store = new RedisStore(client, { allowEviction: true })
      const asked = store.replace(old.key, 1, next, {}, { now: T0, deadline: within(15_000) })
      const outcome = await Promise.race([asked, died])
      outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1)
      if (outcome === 'created') {
        held.add(next.key)
        expect(await live(old.key)).toBe(null)
      }
      await check(scene)
      for (const each of afterwards) {
        await meanwhile[each](scene)
        await check(scene)
      }
    })
    await fc.assert(property, { numRuns: LONG ? 2000 : 60 })
    // Every end was met.
    expect([...outcomes.keys()].sort()).toEqual(expect.arrayContaining(['created', 'dead', 'gone']))
  })
})
