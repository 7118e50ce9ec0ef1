// Clients that throw where they should reject: no reader is logged out by it, none waits for ever, and none of them shares
// its error with another request, which may add to it.

import type { SessionId } from 'coatcheck'
import { SessionManager, SessionStoreError, type Store } from 'coatcheck'
import { MysqlStore } from 'coatcheck/stores/mysql'
import { PostgresStore } from 'coatcheck/stores/postgres'
import { type RedisClient, RedisStore } from 'coatcheck/stores/redis'
import mysql from 'mysql2/promise'
import pg from 'pg'
import { expect, it } from 'vitest'

const thrown = (): never => {
  throw new Error('this client is broken')
}

const stores: Record<string, () => Store> = {
  RedisStore: () =>
    new RedisStore({ isOpen: true, isReady: true, sendCommand: thrown } as unknown as RedisClient, {
      allowEviction: true,
    }),
  PostgresStore: () => new PostgresStore(Object.assign(new pg.Pool(), { connect: thrown }) as never),
  MysqlStore: () => new MysqlStore(Object.assign(mysql.createPool({}), { getConnection: thrown }) as never),
}

const reasons = (error: unknown): string[] => (error instanceof Error ? [error.message, ...reasons(error.cause)] : [])

it.each(Object.entries(stores))('%s tells each of the readers of one turn', async (_, open) => {
  const sessions = new SessionManager({ store: open(), sweepInterval: false })
  const ids = ['A', 'B', 'B', 'C'].map(letter => letter.repeat(43) as SessionId)
  for (const asked of [ids, ids.slice(0, 1)]) {
    const outcomes = await Promise.allSettled(asked.map(id => sessions.get(id)))
    const errors = new Set(outcomes.map(outcome => (outcome.status === 'rejected' ? outcome.reason : null)))
    expect(errors.size).toBe(asked.length)
    for (const error of errors) {
      expect(error).toBeInstanceOf(SessionStoreError)
      expect(error.outcome).toBe('not-applied')
      expect(reasons(error)).toContain('this client is broken')
    }
  }
})
