// D1 as workerd, the runtime of Cloudflare's Workers, has it.
import { rmSync } from 'node:fs'
import { Agent, type IncomingMessage, request } from 'node:http'
import { createRequire } from 'node:module'
import { text } from 'node:stream/consumers'
import type { D1Answer, D1Client, D1Query } from 'coatcheck/stores/d1'
import { memoryFolder } from '../support/services/memory-folder.ts'

interface Miniflare {
  /** Where the Worker listens; it is ready then. */
  unsafeGetDirectURL(): Promise<URL>
  dispose(): Promise<void>
}

/** Statements as the Worker gets them. */
interface Sent extends D1Query {
  readonly sql: string
  readonly values: readonly unknown[]
}

type Told = { readonly answers: D1Answer[] } | { readonly error: string }

// The batches of the real binding, for what this process asks. Miniflare's own bridge to a binding takes three blocking
// calls for each statement.
const SCRIPT = `export default {
  async fetch(request, env) {
    const statements = await request.json()
    try {
      const answers = await env.DB.batch(statements.map(({ sql, values }) => env.DB.prepare(sql).bind(...values)))
      return Response.json({ answers })
    } catch (error) {
      return Response.json({ error: error.message })
    }
  }
}`

/** What a Worker answers; its client of fetch() would take longer than the Worker. */
const post = <T>(url: URL, agent: Agent, body: unknown) =>
  new Promise<T>((resolve, reject) => {
    const take = async (response: IncomingMessage) => {
      const answer = await text(response)
      if (response.statusCode !== 200) throw new Error(`the Worker answers ${response.statusCode}: ${answer}`)
      return JSON.parse(answer)
    }
    const sent = request(url, { method: 'POST', agent }, response => resolve(take(response)))
    sent.once('error', reject).end(JSON.stringify(body))
  })

/** Starts workerd with one empty database. */
export async function startD1(): Promise<{
  database: D1Client
  run(sql: string): Promise<unknown>
  stop(): Promise<void>
}> {
  const { Miniflare } = createRequire(new URL('../support/drivers/package.json', import.meta.url))('miniflare')
  const folder = memoryFolder('d1')
  // Its own socket: Miniflare's entry to all Workers takes longer than the database.
  const sockets = [{ host: '127.0.0.1', port: 0 }]
  const worker = {
    modules: true,
    script: SCRIPT,
    compatibilityDate: '2025-11-01',
    d1Databases: ['DB'],
    d1Persist: folder,
  }
  const runtime: Miniflare = new Miniflare({ ...worker, unsafeDirectSockets: sockets })
  const url = await runtime.unsafeGetDirectURL()
  // A machine has no sockets for thousands of requests at once. None is kept: the Worker may have closed it meanwhile.
  const agent = new Agent({ keepAlive: false, maxSockets: 8 })
  const prepare = (sql: string, ...values: unknown[]): Sent => ({
    sql,
    values,
    bind: (...bound) => prepare(sql, ...bound),
  })
  const batch = async (statements: Sent[]) => {
    const told = await post<Told>(url, agent, statements)
    if ('error' in told) throw new Error(told.error)
    return told.answers
  }
  return {
    database: { prepare, batch },
    run: sql => batch([prepare(sql)]),
    async stop() {
      agent.destroy()
      await runtime.dispose()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}
