// The `@example` of each docstring of the public API, as editors and the reference show them.
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import ts from 'typescript'
import type { Module } from '../../support/page-code.ts'
import { read, root } from '../../support/pages.ts'

/** What an example takes for granted. */
const GIVEN = `
import type { IncomingMessage, ServerResponse } from 'node:http'
import { SessionManager, sessionId } from 'coatcheck'
import { connectStore } from 'coatcheck/connect'
import { openVisit } from 'coatcheck/custom-server'
import { fetchVisits } from 'coatcheck/fetch'
import { type NextFunctions, type NextResponses, nextVisits } from 'coatcheck/next'
import { nodeVisits } from 'coatcheck/node'
import { MemoryStore } from 'coatcheck/stores/memory'
import { MysqlStore } from 'coatcheck/stores/mysql'
import { PostgresStore } from 'coatcheck/stores/postgres'
import { RedisStore } from 'coatcheck/stores/redis'
import { SqliteStore } from 'coatcheck/stores/sqlite'
import express from 'express'
import expressSession from 'express-session'
import Database from 'libsql'
import mysql from 'mysql2/promise'
import pg from 'pg'
import { createClient } from 'redis'
declare const request: IncomingMessage
declare const response: ServerResponse
declare const form: FormData
declare const cookie: string
declare const headers: NextFunctions['headers']
declare const cookies: NextFunctions['cookies']
declare const NextResponse: NextResponses
declare const [name, password]: [string, string]
declare function checkPassword(name: string, password: string): Promise<{ id: string; name: string }>
const initial = () => ({ cart: [] as string[], notice: '', theme: 'light' })
const sessions = new SessionManager({ store: new MemoryStore(), userIds: 'string', initial })
const visits = nodeVisits(sessions)
const visit = visits.of(request, response)
const session = await visit.requireUser()
const { user } = session
const app = express()
const secret = 'keyboard cat'
`
/** In this folder `session` is the middleware. */
const OF_MIDDLEWARE = 'src/connect/'

function examplesOf(path: string): { place: string; code: string }[] {
  const found: { place: string; code: string }[] = []
  const look = (node: ts.Node): void => {
    for (const tag of ts.getJSDocTags(node)) {
      if (tag.tagName.text !== 'example' || tag.parent.parent !== node) continue
      const line = file.getLineAndCharacterOfPosition(tag.pos).line + 1
      found.push({ place: `${path}:${line}`, code: ts.getTextOfJSDocComment(tag.comment) ?? '' })
    }
    ts.forEachChild(node, look)
  }
  const file = ts.createSourceFile(path, read(path), ts.ScriptTarget.ES2022, true)
  look(file)
  return found
}

const PATHS = ['src', 'stores'].flatMap(folder =>
  readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
    .filter(path => path.endsWith('.ts'))
    .map(path => join(folder, path)),
)
const FOUND = PATHS.flatMap(examplesOf)
/** As modules: each in a block of its own, so that an example may declare what is given. */
export const EXAMPLES: readonly Module[] = FOUND.map(({ place, code }) => ({
  place,
  page: 'docs/methods.md',
  language: 'ts',
  code: `${GIVEN}{\n${place.startsWith(OF_MIDDLEWARE) ? 'const session = expressSession\n' : ''}${code}\n}`,
  markers: new Map(),
}))
/** How many the sources have. */
export const WRITTEN = PATHS.reduce((sum, path) => sum + read(path).split(/^ *\* @example$/m).length - 1, 0)
