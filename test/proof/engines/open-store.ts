// A store as one process opens it.
import type { Store } from 'coatcheck'
import { MemoryStore } from 'coatcheck/stores/memory'
import { MysqlStore } from 'coatcheck/stores/mysql'
import { PostgresStore } from 'coatcheck/stores/postgres'
import { RedisStore } from 'coatcheck/stores/redis'
import { SqliteStore } from 'coatcheck/stores/sqlite'
import mysql from 'mysql2/promise'
import pg from 'pg'
import { CLUSTER, STANDALONE } from '../../support/redis/clients.ts'
import { openSqlite, type SqliteDriver } from '../../support/services/sqlite.ts'

/** How a store is opened in another process. */
export type Opening =
  | { readonly kind: 'memory' }
  | { readonly kind: 'redis'; readonly client: string; readonly url: string }
  | {
      readonly kind: 'redis-cluster'
      readonly client: string
      readonly nodes: readonly { readonly host: string; readonly port: number }[]
    }
  | { readonly kind: 'postgresql' | 'mariadb'; readonly url: string }
  | { readonly kind: 'sqlite'; readonly driver: SqliteDriver; readonly file: string; readonly mode: 'WAL' | 'DELETE' }

const POOL = 6

export async function openStore(opening: Opening): Promise<Store> {
  switch (opening.kind) {
    case 'memory':
      return new MemoryStore()
    case 'redis': {
      const { client } = await STANDALONE[opening.client]!(opening.url)
      return new RedisStore(client)
    }
    case 'redis-cluster': {
      const { client } = await CLUSTER[opening.client]!(opening.nodes)
      return new RedisStore(client)
    }
    case 'postgresql': {
      const pool = new pg.Pool({ connectionString: opening.url, max: POOL })
      pool.on('error', () => {})
      return new PostgresStore(pool)
    }
    case 'mariadb':
      return new MysqlStore(mysql.createPool({ uri: opening.url, connectionLimit: POOL }))
    case 'sqlite':
      return new SqliteStore(openSqlite(opening.driver, opening.file, opening.mode))
  }
}
