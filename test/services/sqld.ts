// Private libSQL servers, for @libsql/client over a network.
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { type Client, type Config, createClient } from '@libsql/client'
import { findSqld } from './engine-list.mjs'
import { memoryFolder } from './memory-folder.ts'
import { freePort, type Running, start, until } from './process.ts'

export interface SqldServer {
  readonly port: number
  readonly url: string
  /** A client of @libsql/client, closed with the server. It sends one request at a time unless told otherwise. */
  client(config?: Partial<Config>): Client
  run(sql: string): Promise<unknown>
  kill(): Promise<void>
  /** Starts it again on the same port, with what its folder holds. */
  restart(): Promise<void>
  pause(): void
  resume(): void
  stop(): Promise<void>
}

/** Starts a sqld with an empty database; `options` of its command line. */
export async function startSqld(options: readonly string[] = []): Promise<SqldServer> {
  const port = await freePort()
  const folder = memoryFolder('sqld')
  const url = `http://127.0.0.1:${port}`
  const clients: Client[] = []
  let running: Running
  const client = (config: Partial<Config> = {}) => {
    // sqld 0.24 now and then stops answering where dozens of writes wait: docs/stores/remote-sqlite.md.
    const made = createClient({ url, concurrency: 1, ...config })
    clients.push(made)
    return made
  }
  const launch = async () => {
    const server = start(findSqld()!, [
      '--http-listen-addr',
      `127.0.0.1:${port}`,
      '--db-path',
      join(folder, 'data'),
      ...options,
    ])
    running = server
    await until('sqld answering', async () => (await fetch(`${url}/health`)).text(), { server })
  }
  await launch()
  return {
    port,
    url,
    client,
    run: sql => clients[0]?.execute(sql) ?? client().execute(sql),
    kill: () => running.stop('SIGKILL'),
    restart: launch,
    pause: () => running.pause(),
    resume: () => running.resume(),
    async stop() {
      for (const each of clients) each.close()
      running.child.kill('SIGCONT')
      await running.stop('SIGKILL')
      rmSync(folder, { recursive: true, force: true })
    },
  }
}
