// @ts-nocheck: it stands around a block of the README, which has the names that are not declared here.
// biome-ignore-all lint/correctness/noUnusedImports: the block uses them
import { RedisStore } from 'coatcheck/stores/redis'
import { MysqlStore, PostgresStore, SqliteStore } from 'coatcheck/stores/sql'
import Database from 'libsql'
import mysql from 'mysql2/promise'
import pg from 'pg'
import { createClient } from 'redis'
/* the block */
