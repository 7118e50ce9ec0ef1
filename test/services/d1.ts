// D1 as workerd, the runtime of Cloudflare's Workers, has it. It keeps the database in memory.
import { createRequire } from 'node:module'
import type { D1Answer, D1Client, D1Query } from 'coatcheck/stores/sql'

interface Miniflare {
  dispatchFetch(url: string, init: { method: string; body: string }): Promise<Response>
  ready: Promise<unknown>
  dispose(): Promise<void>
}

/** Statements as the Worker gets them. */
interface Sent extends D1Query {
  readonly sql: string
  readonly values: readonly unknown[]
}

// The batch of the real binding, for what this process asks. Miniflare's own bridge to a binding takes three blocking calls
// for each statement.
const SCRIPT = `export default {
  async fetch(request, env) {
    const statements = await request.json()
    try {
      return Response.json(await env.DB.batch(statements.map(({ sql, values }) => env.DB.prepare(sql).bind(...values))))
    } catch (error) {
      return new Response(error.message, { status: 500 })
    }
  }
}`

/** Starts workerd with one empty database. */
export async function startD1(): Promise<{
  database: D1Client
  run(sql: string): Promise<unknown>
  stop(): Promise<void>
}> {
  const { Miniflare } = createRequire(new URL('../drivers/package.json', import.meta.url))('miniflare')
  const worker = { modules: true, script: SCRIPT, compatibilityDate: '2025-11-01', d1Databases: ['DB'] }
  const runtime: Miniflare = new Miniflare(worker)
  await runtime.ready
  const prepare = (sql: string, ...values: unknown[]): Sent => ({
    sql,
    values,
    bind: (...bound) => prepare(sql, ...bound),
  })
  // Thousands of calls at once: a machine has no sockets for all of them.
  const turns: (() => void)[] = []
  let free = 64
  const inTurn = async <T>(work: () => Promise<T>): Promise<T> => {
    if (free > 0) free -= 1
    else await new Promise<void>(resolve => turns.push(resolve))
    try {
      return await work()
    } finally {
      const next = turns.shift()
      if (next === undefined) free += 1
      else next()
    }
  }
  const send = async (statements: Sent[]): Promise<D1Answer[]> => {
    const response = await runtime.dispatchFetch('http://d1/', { method: 'POST', body: JSON.stringify(statements) })
    if (!response.ok) throw new Error(await response.text())
    return (await response.json()) as D1Answer[]
  }
  const batch = (statements: Sent[]) => inTurn(() => send(statements))
  return { database: { prepare, batch }, run: sql => batch([prepare(sql)]), stop: () => runtime.dispose() }
}
