// A TCP proxy that breaks connections on purpose: after the server has executed a request and before its answer arrives.
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'

export interface FaultProxy {
  readonly port: number
  /**
   * The next request that contains `text` reaches the server; its answer is swallowed and the connection cut. Resolves
   * when that has happened.
   */
  loseAnswerTo(text: string): Promise<void>
  /**
   * As `loseAnswerTo`, and the same bytes reach the server once more so many ms later, on a connection of their own, as
   * when a client sends a request again. Where the client does so itself meanwhile, they come before that: what it sent
   * first is not the last to arrive.
   */
  deliverTwice(text: string, ms: number): Promise<void>
  /** The next request that contains `text` is swallowed, the connection cut, and new ones are refused until `heal`. */
  loseRequest(text: string): Promise<void>
  /** Cuts all connections now; new ones are refused until `heal`. */
  sever(): void
  /** Keeps all that is sent, closings and new connections too, and delivers it in order at `heal`, as a network does. */
  stall(): void
  /** Nothing comes through the connections that are open now, and none is closed; new ones work. */
  silence(): void
  /** How many connections have come so far. */
  connections(): number
  /** From now on each answer takes so many ms longer. */
  slow(ms: number): void
  /** Begins to stall with the next request that contains `text`; resolves when that has come. */
  stallAt(text: string): Promise<void>
  /** Ends what was begun; resolves once the connections that were closed in a stall are closed at the server as well. */
  heal(): Promise<void>
  /** Where new connections go from now on, as behind an address that fails over. */
  redirect(target: number): void
  /** What the server sends next that ends with `last` is followed at once by `more`, and by the end of the connection. */
  endAfter(last: Buffer, more: Buffer): void
  stop(): Promise<void>
}

/** A request that will be delivered a second time. */
interface Duplicate {
  /** How each of its commands begins. */
  readonly parts: readonly string[]
  deliver(): Promise<void>
}

/** How long the begin of a command is that tells it from others, in bytes. */
const BEGIN = 200

const partsOf = (request: string, text: string): string[] => {
  const parts: string[] = []
  for (let at = request.indexOf(text); at >= 0; at = request.indexOf(text, at + 1))
    parts.push(request.slice(at, at + BEGIN))
  return parts
}

export async function startProxy(target: number): Promise<FaultProxy> {
  const pairs = new Set<readonly [Socket, Socket]>()
  type Trap = { text: string; before: boolean; again?: number }
  let trap: (Trap & { sprung: () => void }) | null = null
  const setTrap = (set: Trap) =>
    new Promise<void>(sprung => {
      trap = { ...set, sprung }
    })
  let severed = false
  let delay = 0
  let port = target
  let held: (() => void)[] | null = null
  let ending: { last: Buffer; more: Buffer } | null = null
  let stalling: { text: string; begun: () => void } | null = null
  const duplicates = new Set<Duplicate>()
  const orphans = new Set<unknown>()
  const silent = new WeakSet<readonly [Socket, Socket]>()
  let connections = 0
  const deliver = (step: () => void) => {
    if (held === null) step()
    else held.push(step)
  }
  const cutAll = () => {
    for (const [client, upstream] of pairs) {
      client.destroy()
      upstream.destroy()
    }
    pairs.clear()
  }
  const deliverAgain = (request: Buffer, text: string, ms: number) => {
    const duplicate: Duplicate = {
      parts: partsOf(request.toString('latin1'), text),
      deliver: () =>
        new Promise(resolve => {
          clearTimeout(timer)
          duplicates.delete(duplicate)
          const upstream = connect({ port, host: '127.0.0.1', noDelay: true })
          upstream.on('error', () => {})
          upstream.on('data', () => upstream.end())
          upstream.on('close', () => resolve())
          upstream.write(request)
        }),
    }
    const timer = setTimeout(duplicate.deliver, ms)
    duplicates.add(duplicate)
  }
  const server = createServer(client => {
    connections++
    if (severed) return void client.destroy()
    client.on('error', () => {})
    deliver(() => {
      if (!client.destroyed) join(client)
    })
  })
  const join = (client: Socket) => {
    const upstream = connect({ port, host: '127.0.0.1', noDelay: true })
    client.setNoDelay(true)
    const pair = [client, upstream] as const
    pairs.add(pair)
    let cutting: (() => void) | null = null
    // Answers stay in order, also when they are slow no more.
    const slowed: { chunk: Buffer; due: number }[] = []
    const pass = () => {
      while (slowed.length > 0 && slowed[0]!.due <= performance.now()) {
        const { chunk } = slowed.shift()!
        deliver(() => client.write(chunk))
      }
      if (slowed.length > 0) setTimeout(pass, Math.max(1, slowed[0]!.due - performance.now()))
    }
    const close = () => {
      pairs.delete(pair)
      client.destroy()
      upstream.destroy()
    }
    const forward = (chunk: Buffer) => {
      if (silent.has(pair)) return
      const request = chunk.toString('latin1')
      const before = [...duplicates].filter(({ parts }) => parts.some(part => request.includes(part)))
      if (before.length > 0) {
        client.pause()
        void Promise.all(before.map(duplicate => duplicate.deliver())).then(() => {
          forward(chunk)
          client.resume()
        })
        return
      }
      if (trap && request.includes(trap.text)) {
        const { text, before, again, sprung } = trap
        trap = null
        if (again !== undefined) deliverAgain(chunk, text, again)
        if (before) {
          severed = true
          cutAll()
          sprung()
          return
        }
        cutting = sprung
      }
      if (stalling && request.includes(stalling.text)) {
        held ??= []
        stalling.begun()
        stalling = null
      }
      deliver(() => upstream.write(chunk))
    }
    client.on('data', forward)
    upstream.on('data', chunk => {
      if (silent.has(pair)) return
      if (cutting) {
        close()
        cutting()
      } else if (ending && chunk.subarray(-ending.last.length).equals(ending.last)) {
        client.write(Buffer.concat([chunk, ending.more]))
        ending = null
        client.end()
        upstream.destroy()
      } else if (delay > 0 || slowed.length > 0) {
        slowed.push({ chunk, due: performance.now() + delay })
        if (slowed.length === 1) setTimeout(pass, delay)
      } else deliver(() => client.write(chunk))
    })
    for (const socket of pair) socket.on('error', () => {})
    upstream.on('close', () => deliver(close))
    client.on('close', () => {
      if (held === null) return close()
      const closed = upstream.destroyed || new Promise(resolve => upstream.once('close', resolve))
      // What was sent before still arrives, then the end.
      held.push(() => {
        orphans.add(closed)
        upstream.end()
      })
    })
  }
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  return {
    port: (server.address() as AddressInfo).port,
    loseAnswerTo: text => setTrap({ text, before: false }),
    deliverTwice: (text, again) => setTrap({ text, before: false, again }),
    loseRequest: text => setTrap({ text, before: true }),
    sever() {
      severed = true
      cutAll()
    },
    stall() {
      held ??= []
    },
    silence() {
      for (const pair of pairs) silent.add(pair)
    },
    connections: () => connections,
    slow(ms) {
      delay = ms
    },
    stallAt: text =>
      new Promise<void>(begun => {
        stalling = { text, begun }
      }),
    async heal() {
      severed = false
      trap = null
      const steps = held ?? []
      held = null
      for (const step of steps) step()
      await Promise.all(orphans)
      orphans.clear()
    },
    redirect(target) {
      port = target
    },
    endAfter(last, more) {
      ending = { last, more }
    },
    async stop() {
      cutAll()
      await new Promise(resolve => server.close(resolve))
    },
  }
}
