import { afterAll, beforeAll, expect, it } from 'vitest'
import { read } from '../support/pages.ts'
import { describeEngine } from '../support/services/engines.ts'
import { freePort, until } from '../support/services/process.ts'
import { startRedis } from '../support/services/redis.ts'
import { problemsOf, type RunningRecipe, startRecipe } from './recipe.ts'
import { COUNTED, crowd, visitEverything } from './watched.ts'

it('the recipe for Prometheus has the types that it says', () => {
  expect(problemsOf('prometheus')).toBe('')
}, 120_000)

const CALLS = 'coatcheck_store_call_duration_seconds'
const call = (operation: string, outcome: string) => `${CALLS}_count{operation="${operation}",outcome="${outcome}"}`

describeEngine('redis', 'the recipe for Prometheus, on Redis', () => {
  let running: RunningRecipe
  let server: Awaited<ReturnType<typeof startRedis>>
  let address = ''

  /** The text of /metrics: each series, with its labels, and its value. */
  async function scrape(): Promise<Map<string, number>> {
    const response = await fetch(address)
    expect([response.status, response.headers.get('content-type')]).toEqual([
      200,
      expect.stringMatching(/^text\/plain; version=/),
    ])
    const lines = [...(await response.text()).matchAll(/^([a-z_]+(?:\{[^}]*\})?) (\S+)$/gm)]
    return new Map(lines.map(([, series, value]) => [series!, Number(value)]))
  }
  const starting = (series: Map<string, number>, prefix: RegExp) =>
    Object.fromEntries([...series].filter(([name]) => prefix.test(name)))

  beforeAll(async () => {
    server = await startRedis()
    const port = await freePort()
    address = `http://127.0.0.1:${port}/metrics`
    running = await startRecipe('prometheus', {
      env: () => ({ METRICS_PORT: `${port}`, STORE_URL: server.url }),
    })
  }, 120_000)
  afterAll(async () => {
    await running?.stop()
    await server?.stop()
  })

  it('shows from the start, as 0, what an alarm waits for', async () => {
    const series = await scrape()
    for (const reason of ['cross-origin', 'csrf', 'insecure'])
      expect(series.get(`coatcheck_events_total{type="request-refused",reason="${reason}"}`)).toBe(0)
    for (const reason of ['limit', 'stale-login', 'conflict'])
      expect(series.get(`coatcheck_events_total{type="write-refused",reason="${reason}"}`)).toBe(0)
    for (const type of ['remember-theft', 'store-error', 'corrupt-record'])
      expect(series.get(`coatcheck_events_total{type="${type}",reason=""}`)).toBe(0)
    expect(series.get('coatcheck_sessions_live')).toBe(0)
  })

  it('counts lookups, touches, conflicts, logins, refusals, a theft and an outage', async () => {
    await visitEverything(running, () =>
      until('the session is read', async () => {
        expect((await scrape()).get(call('read', 'found'))).toBe(1)
      }),
    )
    const series = await scrape()
    const counted = Object.entries(COUNTED).flatMap(([operation, outcomes]) =>
      Object.entries(outcomes).map(([outcome, count]) => [call(operation, outcome), count]),
    )
    // But for the count of live sessions, which is a walk where the store has none.
    const made = starting(series, new RegExp(`^${CALLS}_count{operation="(?!count|scan)`))
    expect(made).toEqual(Object.fromEntries(counted))
    const events = Object.entries(starting(series, /^coatcheck_events_total/)).filter(([, count]) => count > 0)
    const event = (type: string, reason = '') => `coatcheck_events_total{type="${type}",reason="${reason}"}`
    expect(Object.fromEntries(events)).toEqual({
      [event('created', 'login')]: 3,
      [event('created', 'remembered')]: 1,
      [event('destroyed', 'logout')]: 1,
      [event('destroyed', 'theft')]: 1,
      [event('remember-theft')]: 1,
      [event('request-refused', 'cross-origin')]: 3,
      [event('request-refused', 'insecure')]: 1,
      [event('store-error')]: 1,
    })
    for (const [name] of read('examples/prometheus/alerts.yml').matchAll(/coatcheck_\w+/g))
      expect(Object.keys(starting(series, new RegExp(`^${name}\\b`))), name).not.toEqual([])
    for (const [name, value] of Object.entries(starting(series, new RegExp(`^${CALLS}_sum`))))
      expect([name, value > 0]).toEqual([name, true])
    expect(starting(series, /^http_request_duration_seconds_count/)).toMatchObject({
      'http_request_duration_seconds_count{endpoint="POST /login",status="200"}': 3,
      'http_request_duration_seconds_count{endpoint="POST /login",status="403"}': 4,
      'http_request_duration_seconds_count{endpoint="GET /profile",status="503"}': 1,
    })
  })

  it('shows how many sessions one command read', async () => {
    await crowd(running.url, 20)
    const series = await scrape()
    const reads = (series.get(call('read', 'found')) ?? 0) + (series.get(call('read', 'none')) ?? 0)
    expect(reads).toBe(COUNTED.read.found + COUNTED.read.none + 20)
    expect(series.get('coatcheck_shared_read_keys_sum')).toBe(reads)
    const commands = series.get('coatcheck_shared_read_keys_count')!
    expect(commands).toBeGreaterThan(0)
    expect(commands).toBeLessThanOrEqual(reads)
  })

  it('asks the store once a minute how many sessions are live, and not at each scrape', async () => {
    const series = await scrape()
    expect(series.get('coatcheck_sessions_live')).toBe(0) // as at the first scrape
    expect((series.get(call('count', 'done')) ?? 0) + (series.get(call('scan', 'done')) ?? 0)).toBe(1)
  })

  it('has no label that a client chooses, and no key', async () => {
    const text = await (await fetch(address)).text()
    const values = new Set([...text.matchAll(/[{,](?!le=)\w+="([^"]*)"/g)].map(([, value]) => value!))
    expect(values).toContain('cross-origin')
    for (const value of values) expect(value).not.toMatch(/evil|\.env|^ada$|[\w-]{40}/)
  })
})
