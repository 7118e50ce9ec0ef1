// A TCP proxy that breaks connections on purpose: after the server has executed a request and before its answer arrives.
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'

export interface FaultProxy {
  readonly port: number
  /** Bytes from clients that were forwarded since the last call. */
  seen(): string
  /**
   * The next request that contains `text` reaches the server; its answer is swallowed and the connection cut. Resolves
   * when that has happened.
   */
  loseAnswerTo(text: string): Promise<void>
  /** The next request that contains `text` is swallowed, the connection cut, and new ones are refused until `heal`. */
  loseRequest(text: string): Promise<void>
  /** Cuts all connections now; new ones are refused until `heal`. */
  sever(): void
  heal(): void
  stop(): Promise<void>
}

export async function startProxy(target: number): Promise<FaultProxy> {
  const pairs = new Set<readonly [Socket, Socket]>()
  let trap: { text: string; before: boolean; sprung: () => void } | null = null
  let severed = false
  let seen = ''
  const cutAll = () => {
    for (const [client, upstream] of pairs) {
      client.destroy()
      upstream.destroy()
    }
    pairs.clear()
  }
  const server = createServer(client => {
    if (severed) return void client.destroy()
    const upstream = connect({ port: target, host: '127.0.0.1', noDelay: true })
    client.setNoDelay(true)
    const pair = [client, upstream] as const
    pairs.add(pair)
    let cutting: (() => void) | null = null
    const close = () => {
      pairs.delete(pair)
      client.destroy()
      upstream.destroy()
    }
    client.on('data', chunk => {
      const request = chunk.toString('latin1')
      seen += request
      if (trap && request.includes(trap.text)) {
        const { before, sprung } = trap
        trap = null
        if (before) {
          severed = true
          cutAll()
          sprung()
          return
        }
        cutting = sprung
      }
      upstream.write(chunk)
    })
    upstream.on('data', chunk => {
      if (cutting) {
        close()
        cutting()
      } else client.write(chunk)
    })
    for (const socket of pair) {
      socket.on('error', close)
      socket.on('close', close)
    }
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  return {
    port: (server.address() as AddressInfo).port,
    seen() {
      const bytes = seen
      seen = ''
      return bytes
    },
    loseAnswerTo: text =>
      new Promise<void>(sprung => {
        trap = { text, before: false, sprung }
      }),
    loseRequest: text =>
      new Promise<void>(sprung => {
        trap = { text, before: true, sprung }
      }),
    sever() {
      severed = true
      cutAll()
    },
    heal() {
      severed = false
    },
    async stop() {
      cutAll()
      await new Promise(resolve => server.close(resolve))
    },
  }
}
