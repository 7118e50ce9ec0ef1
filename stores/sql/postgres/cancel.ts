import { clearTimeout, setTimeout } from 'node:timers'

/** The inside of a client of `pg`, for a cancel request. Other drivers of the same shape may lack it. */
interface Inside {
  readonly processID?: unknown
  readonly secretKey?: unknown
  readonly host?: unknown
  readonly port?: unknown
  readonly ssl?: unknown
  readonly sslNegotiation?: unknown
  readonly connection?: { readonly constructor: new (config: object) => Request }
}
/** A connection of `pg` below its client. */
interface Request {
  readonly stream: { destroy(): void }
  connect(port: unknown, host?: unknown): void
  requestSsl(): void
  cancel(processID: number, secretKey: number): void
  on(event: string, listener: () => void): void
}

const TIMEOUT = 2000

/**
 * Asks the server to cancel the statement of this connection. The secret key is this connection's own: another server behind
 * the same address ignores the request.
 */
export function cancelStatement(client: object, stream: unknown): void {
  const { processID, secretKey, host, port, ssl, sslNegotiation, connection } = client as Inside
  if (typeof processID !== 'number' || typeof secretKey !== 'number' || connection === undefined) return
  const request = new connection.constructor({ ssl, sslNegotiation, stream })
  // Not the socket's own timer: the sockets of similar drivers may have none.
  const timer = setTimeout(() => request.stream.destroy(), TIMEOUT).unref()
  const end = () => {
    clearTimeout(timer)
    request.stream.destroy()
  }
  request.on('error', end)
  // The server does not answer. It closes the connection once it has sent the signal.
  request.on('end', end)
  request.on(ssl ? 'sslconnect' : 'connect', () => request.cancel(processID, secretKey))
  if (ssl && sslNegotiation !== 'direct') request.on('connect', () => request.requestSsl())
  if (typeof host === 'string' && host.startsWith('/')) request.connect(`${host}/.s.PGSQL.${port}`)
  else request.connect(port, host)
}
