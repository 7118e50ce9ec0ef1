// The end of a session reaches open streams at four nodes.
import { once } from 'node:events'
import { Agent, get, type IncomingMessage } from 'node:http'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { type Service, startExample } from '../../support/example-service.ts'

const NODE = '../test/examples/watch/node.mjs'
/** No poll comes in time. */
const NEVER = `${2 ** 31 - 1}`
const STREAMS = 160
const ENDS = ['logout', 'everywhere', 'revoke', 'limit', 'renew'] as const

export interface Database {
  readonly url: string
  stop(): unknown
}

interface Stream {
  readonly isOpen: () => boolean
  readonly closed: Promise<unknown>
}

let users = 0

export function streamsEnd(open: () => Promise<Database>): void {
  let database: Database
  let nodes: Service[]
  const agent = new Agent({ maxSockets: Number.POSITIVE_INFINITY })
  beforeAll(async () => {
    database = await open()
    const env = { STORE_URL: database.url, EVERY: NEVER }
    // The first one makes the tables.
    nodes = [await startExample(NODE, env), ...(await Promise.all([1, 2, 3].map(() => startExample(NODE, env))))]
  }, 120_000)
  afterAll(async () => {
    agent.destroy()
    await Promise.all((nodes ?? []).map(node => node.stop()))
    await database?.stop()
  })

  const ask = async (node: Service, path: string, authorization = '') => {
    const response = await fetch(node.url + path, { headers: { authorization } })
    const text = await response.text()
    expect([path, response.status, text]).toEqual([path, 200, expect.any(String)])
    return text
  }
  async function stream(node: Service, authorization: string): Promise<Stream> {
    const [response] = (await once(get(`${node.url}/open`, { agent, headers: { authorization } }), 'response')) as [
      IncomingMessage,
    ]
    expect(response.statusCode).toBe(200)
    response.on('error', () => {}).resume()
    const closed = once(response, 'end')
    closed.catch(() => {}) // cut when the test is over
    return { isOpen: () => !response.readableEnded, closed }
  }
  /** A session with a stream at each node. */
  async function begin() {
    const user = `${++users}`
    const secret = await ask(nodes[0]!, `/login?user=${user}`)
    return { user, secret, streams: await Promise.all(nodes.map(node => stream(node, secret))) }
  }
  type Begun = Awaited<ReturnType<typeof begin>>
  const times = <T>(count: number, each: (at: number) => Promise<T>) =>
    Promise.all(Array.from({ length: count }, (_, at) => each(at)))

  async function end({ user, secret }: Begun, how: (typeof ENDS)[number], node: Service) {
    if (how === 'limit') for (let login = 0; login < 2; login++) await ask(node, `/login?user=${user}`)
    else await ask(node, `/${how}?user=${user}`, secret)
  }

  it(`closes ${STREAMS} streams at four nodes when their sessions end in any way, and no others`, async () => {
    const begun: Begun[] = []
    while (begun.length < STREAMS / nodes.length) begun.push(...(await times(10, () => begin())))
    const others = await times(10, () => begin())
    for (let from = 0; from < begun.length; from += 20)
      await Promise.all(
        begun.slice(from, from + 20).map(async (session, at) => {
          await end(session, ENDS[at % ENDS.length]!, nodes[at % nodes.length]!)
          for (const { closed } of session.streams) await closed
        }),
      )
    for (const { streams } of others) expect(streams.map(({ isOpen }) => isOpen())).toEqual(nodes.map(() => true))
    await times(others.length, at => end(others[at]!, 'everywhere', nodes[0]!))
    await Promise.all(others.flatMap(({ streams }) => streams.map(({ closed }) => closed)))
  }, 240_000)
}
