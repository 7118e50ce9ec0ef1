// A server of node:http on a free port of this machine, and a client that sends exactly the headers it is told to.
import { once } from 'node:events'
import {
  type Agent,
  createServer,
  type IncomingMessage,
  type RequestListener,
  type Server,
  request as send,
} from 'node:http'
import type { AddressInfo, Server as NetServer } from 'node:net'

/** Opens any server on a free port of this machine. */
export async function portOf(server: NetServer): Promise<number> {
  await once(server.listen(0, '127.0.0.1'), 'listening')
  return (server.address() as AddressInfo).port
}

export interface Listening {
  readonly server: Server
  readonly port: number
  readonly url: string
  /** Ends its connections too. */
  close(): Promise<void>
}

export async function listening(listener: RequestListener): Promise<Listening> {
  const server = createServer(listener)
  // On a busy machine a client may use a connection again in the moment in which it is closed as idle.
  server.keepAliveTimeout = 60_000
  const port = await portOf(server)
  const close = async () => {
    server.close().closeAllConnections()
    await once(server, 'close')
  }
  return { server, port, url: `http://127.0.0.1:${port}`, close }
}

export function headersOf({ headersDistinct }: IncomingMessage): Headers {
  const all = Object.entries(headersDistinct)
  return new Headers(all.flatMap(([name, values]) => values!.map((value): [string, string] => [name, value])))
}

export interface Reply {
  readonly status: number
  readonly headers: Record<string, string | string[] | undefined>
  readonly cookies: string[]
  readonly body: string
}
export type Send = (
  path: string,
  options?: { method?: string; headers?: Record<string, string | string[]>; body?: string },
) => Promise<Reply>

export const sender =
  (port: number, agent: Agent | false = false): Send =>
  async (path, { method = 'GET', headers = {}, body } = {}) => {
    const request = send({ port, host: '127.0.0.1', path, method, headers, agent }).end(body)
    const [response] = await once(request, 'response')
    const text = Buffer.concat(await response.toArray()).toString()
    const cookies = response.headers['set-cookie'] ?? []
    return { status: response.statusCode, headers: response.headers, cookies, body: text }
  }
