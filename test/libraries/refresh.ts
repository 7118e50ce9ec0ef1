// examples/once.mjs: one refresh over all nodes, as the guide promises it, by a real OpenID provider and over a store that
// processes share.
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, it } from 'vitest'
import { type Service, startExample } from '../support/example-service.ts'
import { started } from '../support/started.ts'
import { startOidcProvider } from './provider.ts'

// Not in this folder, which is a package of its own.
const NODE = '../test/examples/refresh/node.mjs'
const REQUESTS = 200

function signal() {
  let give = () => {}
  const given = new Promise<void>(resolve => {
    give = resolve
  })
  return { give, given }
}

type Open = () => Promise<{ url: string; stop(): unknown }>

/** Starts four nodes, one of them four minutes ahead, and asks that they refresh once. */
export function oneRefresh(open: Open) {
  const database = started(open)
  const provider = started(startOidcProvider)
  const startNode = (env: Record<string, string> = {}) =>
    startExample(NODE, { STORE_URL: database().url, PROVIDER: provider().url, ...env })
  const nodes = started(async () => {
    // The first one makes the tables; the last one is ahead of the others.
    const all = [await startNode(), ...(await Promise.all([startNode(), startNode(), startNode({ AHEAD: '240000' })]))]
    return { all, stop: () => Promise.all(all.map(node => node.stop())) }
  })

  const ask = async (node: Service, path: string, headers: Record<string, string>) => {
    const response = await fetch(node.url + path, { headers })
    return [response.status, await response.text()] as const
  }
  let logins = 0
  async function logIn(lease = {}) {
    const name = `grant ${++logins}`
    const [status, secret] = await ask(nodes().all[0]!, '/login', { 'X-Refresh': await provider().grant(name) })
    expect([status, secret]).toEqual([200, expect.any(String)])
    const access = (node: Service) => ask(node, '/access', { Authorization: secret, ...lease })
    const before = { ...provider().count }
    const counts = () => ({
      refreshed: provider().count.refreshed - before.refreshed,
      reused: provider().count.reused - before.reused,
    })
    return { name, secret, access, counts }
  }
  const all = <T>(count: number, each: (node: Service) => Promise<T>) =>
    Promise.all(Array.from({ length: count }, (_, index) => each(nodes().all[index % 4]!)))

  it(`refreshes once for ${REQUESTS} requests at four nodes, one of them four minutes ahead`, async () => {
    const { name, secret, access, counts } = await logIn()
    await all(4, node => ask(node, '/read', { Authorization: secret }))
    provider().at.gate = () => sleep(150)
    const answers = await all(REQUESTS, access)
    expect(new Set(answers.map(([status]) => status))).toEqual(new Set([200]))
    expect(new Set(answers.map(([, text]) => text)).size).toBe(1)
    expect(counts()).toEqual({ refreshed: 1, reused: 0 })
    expect(await provider().isEnded(name)).toBe(false)
  })

  return {
    ask,
    logIn,
    all,
    startNode,
    node: (at: number) => nodes().all[at]!,
    provider,
  }
}

/** All that is promised of a refresh. */
export function refreshScenes(open: Open): void {
  const { ask, logIn, all, startNode, node, provider } = oneRefresh(open)

  it('refreshes by another node where the one that had begun is killed before the provider answers', async () => {
    const { name, access, counts } = await logIn({ 'X-Lease': '3000' })
    const doomed = await startNode()
    const asked = signal()
    provider().at.gate = async () => {
      provider().at.gate = async () => {}
      asked.give()
      await doomed.stop('SIGKILL')
      provider().at.failures = 1 // the provider never saw it
    }
    const lost = access(doomed).catch(() => 'lost')
    await asked.given
    const answers = await all(8, access)
    expect(await lost).toBe('lost')
    expect(new Set(answers.map(([status]) => status))).toEqual(new Set([200]))
    expect(counts()).toEqual({ refreshed: 1, reused: 0 })
    expect(await provider().isEnded(name)).toBe(false)
  })

  it('revives nothing where the user logs out meanwhile', async () => {
    const { secret, access } = await logIn()
    const [asked, out] = [signal(), signal()]
    provider().at.gate = () => {
      asked.give()
      return out.given
    }
    const running = all(8, access)
    await asked.given
    expect(await ask(node(1), '/logout', { Authorization: secret })).toEqual([200, 'undefined'])
    out.give()
    for (const [status] of await running) expect(status).toBe(401)
    provider().at.gate = async () => {}
    expect((await access(node(2)))[0]).toBe(401)
  })

  it('rejects where the provider is away, and keeps the grant for the next request', async () => {
    const { name, access, counts } = await logIn()
    provider().at.gate = () => sleep(50)
    provider().at.failures = 1
    const [first] = await all(1, access)
    expect(first![0]).toBe(502)
    expect((await access(node(2)))[0]).toBe(200)
    expect(counts()).toEqual({ refreshed: 1, reused: 0 })
    expect(await provider().isEnded(name)).toBe(false)
  })
}
