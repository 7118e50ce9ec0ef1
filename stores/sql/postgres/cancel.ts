import type { PgClient } from './driver.ts'

/** What is used of a connection of `pg` to ask its server to stop it; other drivers of the same shape may lack it. */
interface Inside {
  readonly processID?: unknown
  readonly secretKey?: unknown
  readonly host?: unknown
  readonly port?: unknown
  readonly ssl?: unknown
  readonly sslNegotiation?: unknown
  readonly connection?: { readonly constructor: new (config: object) => Request }
}
/** A connection of `pg` below its Client. */
interface Request {
  readonly stream: { destroy(): void }
  connect(port: unknown, host?: unknown): void
  requestSsl(): void
  cancel(processID: number, secretKey: number): void
  on(event: string, listener: () => void): void
}

/**
 * Asks the server to cancel what this connection runs, by the key that only this connection was given: another server
 * behind the same address takes no notice. Gives whether the server took the request, or `null` where none can be made.
 */
export function cancelStatement(client: PgClient, stream: unknown, timeout: number): Promise<boolean> | null {
  const { processID, secretKey, host, port, ssl, sslNegotiation, connection } = client as unknown as Inside
  if (typeof processID !== 'number' || typeof secretKey !== 'number' || connection === undefined) return null
  return new Promise(resolve => {
    let sent = false
    let request: Request | null = null
    const end = (taken: boolean) => {
      clearTimeout(timer)
      request?.stream.destroy()
      resolve(taken)
    }
    const timer = setTimeout(() => end(false), timeout)
    try {
      const opened = new connection.constructor({ ssl, sslNegotiation, stream })
      request = opened
      opened.on('error', () => end(sent))
      // The server says nothing, it closes the connection once the signal is sent.
      opened.on('end', () => end(sent))
      opened.on(ssl ? 'sslconnect' : 'connect', () => {
        opened.cancel(processID, secretKey)
        sent = true
      })
      if (ssl && sslNegotiation !== 'direct') opened.on('connect', () => opened.requestSsl())
      if (typeof host === 'string' && host.startsWith('/')) opened.connect(`${host}/.s.PGSQL.${port}`)
      else opened.connect(port, host)
    } catch {
      end(false)
    }
  })
}
