// D1 as workerd, the runtime of Cloudflare's Workers, has it. It keeps the database in memory.
import { createRequire } from 'node:module'
import type { D1Client } from 'coatcheck/stores/sql'

interface Miniflare {
  getD1Database(binding: string): Promise<D1Client>
  dispose(): Promise<void>
}

/** Starts workerd with one empty database. */
export async function startD1(): Promise<{
  database: D1Client
  run(sql: string): Promise<unknown>
  stop(): Promise<void>
}> {
  const { Miniflare } = createRequire(new URL('../drivers/package.json', import.meta.url))('miniflare')
  const worker = { modules: true, script: 'export default {}', compatibilityDate: '2025-11-01', d1Databases: ['DB'] }
  const runtime: Miniflare = new Miniflare(worker)
  const database = await runtime.getD1Database('DB')
  return {
    database,
    run: sql => database.batch([database.prepare(sql).bind()]),
    stop: () => runtime.dispose(),
  }
}
