// @ts-nocheck: it stands around a block of the README, which has the names that are not declared here.
// biome-ignore-all lint/correctness/noUnusedImports: the block uses them

import { MysqlStore } from 'coatcheck/stores/mysql'
import { PostgresStore } from 'coatcheck/stores/postgres'
import { RedisStore } from 'coatcheck/stores/redis'
import { SqliteStore } from 'coatcheck/stores/sqlite'
import Database from 'libsql'
import mysql from 'mysql2/promise'
import pg from 'pg'
import { createClient } from 'redis'
/* the block */
