// The servers of the scenes, each with a client whose commands wait at a gate; with a mistake in a script or a statement, or
// as they are.
import { PostgresStore } from 'coatcheck/stores/postgres'
import { RedisStore } from 'coatcheck/stores/redis'
import { Redis } from 'ioredis'
import * as scripts from '../../../stores/redis/scripts.ts'
import { anywhere, soon, T0 } from '../../support/records.ts'
import { tapped } from '../../support/redis/tapped.ts'
import { startPostgres } from '../../support/services/postgres.ts'
import { startRedis } from '../../support/services/redis.ts'
import { Gate, type Server } from './steps.ts'

/** A part of a script or a statement, and what it would be with a mistake. */
export interface Mistake {
  readonly from: string
  readonly to: string
}
export type Open = (mistake?: Mistake) => Promise<Server>

export async function redisServer(): Promise<{ open: Open; stop(): Promise<void> }> {
  const server = await startRedis()
  // Else the first run of each would take a command more.
  for (const { source } of Object.values(scripts)) await server.cli('SCRIPT', 'LOAD', source)
  const open: Open = async mistake => {
    const gate = new Gate()
    const client = new Redis(server.url)
    await client.ping()
    const tap = async (command: string[], send: () => Promise<unknown>) => {
      if (mistake === undefined) return gate.pass(command[0]!, send)
      // The script comes as text then.
      if (command[0] === 'EVALSHA') throw new Error('NOSCRIPT')
      const [name, text = '', ...rest] = command
      const changed = name === 'EVAL' ? text.replace(mistake.from, () => mistake.to) : text
      return gate.pass(name!, () => client.call(name!, [changed, ...rest]))
    }
    // Taken for a cluster: a replacement on another shard takes its steps.
    const store = new RedisStore(tapped(client, tap, true), { allowEviction: true })
    // A store that does not know the server's clock yet sends its first script twice.
    await store.delete(anywhere(), { now: T0, deadline: soon() })
    return {
      ...{ gate, store, clear: () => client.flushall(), blocked: async () => 0, stop: async () => client.disconnect() },
      rules: { endsUserInSteps: true, crosses: (oldKey, newKey) => oldKey.slice(0, 3) !== newKey.slice(0, 3) },
    }
  }
  return { open, stop: () => server.stop() }
}

export async function postgresServer(): Promise<{ open: Open; stop(): Promise<void> }> {
  const server = await startPostgres()
  const plain = server.pool({ max: 2 })
  await new PostgresStore(plain).migrate()
  const open: Open = async mistake => {
    const gate = new Gate()
    const pool = server.pool({ max: 4 })
    const known = new WeakMap<object, object>()
    /** The client, with its statements going through the gate: all but the BEGIN, which sees nothing and locks nothing. */
    const gated = (client: any) => {
      const query = (asked: any, answer: (error: unknown, result?: unknown) => void) => {
        const text = mistake ? asked.text.replace(mistake.from, mistake.to) : asked.text
        const send = () =>
          new Promise((resolve, reject) =>
            client.query({ ...asked, text }, (error: unknown, found: unknown) =>
              error ? reject(error) : resolve(found),
            ),
          )
        const passed = text.startsWith('BEGIN') ? send() : gate.pass(text.trim().split(/\s/)[0], send)
        passed.then(found => answer(null, found), answer)
      }
      const facade = new Proxy(client, {
        get(target, name) {
          if (name === 'query') return query
          const value = target[name]
          return typeof value === 'function' ? value.bind(target) : value
        },
      })
      known.set(client, facade)
      return facade
    }
    const store = new PostgresStore({
      connect: (answer: (error: unknown, client?: unknown) => void) =>
        pool.connect((error, client) => answer(error, client && (known.get(client) ?? gated(client)))),
    })
    return {
      ...{ gate, store, stop: () => pool.end() },
      // The lock that is granted, not the process that has woken up, is what counts.
      blocked: async () => (await plain.query('SELECT DISTINCT pid FROM pg_locks WHERE NOT granted')).rowCount!,
      clear: () => plain.query('DELETE FROM coatcheck_sessions; DELETE FROM coatcheck_sessions_users'),
      rules: { deletesInSteps: true },
    }
  }
  return { open, stop: () => server.stop() }
}
