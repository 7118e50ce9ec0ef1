import { json } from 'node:stream/consumers'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { listening } from '../support/listening.ts'
import { describeEngine } from '../support/services/engines.ts'
import { until } from '../support/services/process.ts'
import { startRedis } from '../support/services/redis.ts'
import { problemsOf, type RunningRecipe, startRecipe } from './recipe.ts'
import { COUNTED, crowd, TRACE, visitEverything } from './watched.ts'

it('the recipe for OpenTelemetry has the types that it says', () => {
  expect(problemsOf('opentelemetry')).toBe('')
}, 120_000)

type Attributes = Record<string, unknown>
interface Span {
  readonly traceId: string
  readonly spanId: string
  readonly parentSpanId?: string
  readonly name: string
  readonly kind: number
  readonly attributes: Attributes
  readonly events: readonly string[]
  readonly status: { code?: number }
}
interface Metric {
  readonly unit: string
  /** Of a counter and a gauge: the value. Of a histogram: the count and the sum. */
  readonly points: readonly { attributes: Attributes; value: number; sum?: number }[]
}

/** Attributes as OTLP writes them in JSON. */
const attributesOf = (list: { key: string; value: Record<string, unknown> }[] = []): Attributes =>
  Object.fromEntries(
    list.map(({ key, value }) => [key, value.stringValue ?? Number(value.intValue ?? value.doubleValue)]),
  )

/** A collector, as far as the SDK can tell: keeps the spans, and the metrics as they were exported last. */
class Collector {
  readonly spans: Span[] = []
  readonly metrics = new Map<string, Metric>()
  stop: () => unknown = () => {}

  async start(): Promise<string> {
    const { url, close } = await listening(async (request, response) => {
      const body: any = await json(request)
      for (const { scopeSpans } of body.resourceSpans ?? [])
        for (const { spans } of scopeSpans) for (const span of spans) this.#keepSpan(span)
      for (const { scopeMetrics } of body.resourceMetrics ?? [])
        for (const { metrics } of scopeMetrics) for (const metric of metrics) this.#keepMetric(metric)
      response.setHeader('Content-Type', 'application/json').end('{}')
    })
    this.stop = close
    return url
  }

  #keepSpan(span: any): void {
    this.spans.push({
      ...span,
      attributes: attributesOf(span.attributes),
      events: (span.events ?? []).map(({ name }: { name: string }) => name),
    })
  }

  #keepMetric({ name, unit, sum, gauge, histogram }: any): void {
    const points = (sum ?? gauge ?? histogram).dataPoints.map((point: any) => ({
      attributes: attributesOf(point.attributes),
      value: Number(point.count ?? point.asInt ?? point.asDouble),
      sum: point.sum,
    }))
    this.metrics.set(name, { unit, points })
  }

  /** Of a metric: the value by the attributes named. */
  counted(name: string, ...by: string[]): Record<string, number> {
    const points = this.metrics.get(name)?.points ?? []
    return Object.fromEntries(points.map(({ attributes, value }) => [by.map(key => attributes[key]).join(' '), value]))
  }
}

describeEngine('redis', 'the recipe for OpenTelemetry, on Redis', () => {
  const collector = new Collector()
  let running: RunningRecipe
  let server: Awaited<ReturnType<typeof startRedis>>

  beforeAll(async () => {
    server = await startRedis()
    const endpoint = await collector.start()
    running = await startRecipe('opentelemetry', {
      env: () => ({
        OTEL_EXPORTER_OTLP_ENDPOINT: endpoint,
        OTEL_BSP_SCHEDULE_DELAY: '20', // spans at once, where it is 5 s by default
        STORE_URL: server.url,
      }),
    })
    await visitEverything(running, () =>
      until('the session is read', async () => {
        expect(collector.spans.filter(({ traceId }) => traceId === TRACE).map(({ name }) => name)).toEqual([
          'coatcheck read',
        ])
      }),
    )
    await crowd(running.url, 20)
    // What is still to be sent is sent at the end.
    await running.stop()
  }, 120_000)
  afterAll(async () => {
    await collector.stop()
    await server?.stop()
  })

  it('draws the calls to the store below the request, and the request below its caller', () => {
    const spans = collector.spans.filter(({ traceId }) => traceId === TRACE)
    const request = spans.find(({ name }) => name === 'PUT /theme')!
    expect([request.parentSpanId, request.kind]).toEqual(['00f067aa0ba902b7', 2])
    expect(request.attributes).toEqual({
      'http.request.method': 'PUT',
      'http.route': '/theme',
      'url.scheme': 'http',
      'http.response.status_code': 200,
    })
    const calls = spans.filter(span => span !== request)
    expect(calls.map(({ name, attributes }) => [name, attributes['coatcheck.outcome']])).toEqual([
      ['coatcheck read', 'found'],
      ['coatcheck update', 'conflict'],
      ['coatcheck read', 'found'],
      ['coatcheck update', 'updated'],
    ])
    for (const call of calls)
      expect([call.parentSpanId, call.kind, call.attributes['db.system.name']]).toEqual([request.spanId, 3, 'redis'])
  })

  it('notes on the span of the request what happened to its session', () => {
    const noted = collector.spans.flatMap(({ name, events }) => events.map(event => `${name}: ${event}`))
    const count = (text: string) => noted.filter(each => each === text).length
    expect(count('POST /login: coatcheck request-refused')).toBe(4)
    expect(count('POST /login: coatcheck created')).toBe(3 + 20)
    expect(count('GET /profile: coatcheck created')).toBe(1)
    expect(count('GET /profile: coatcheck remember-theft')).toBe(1)
    expect(count('GET /profile: coatcheck store-error')).toBe(1)
    expect(count('POST /logout: coatcheck destroyed')).toBe(1)
  })

  it('marks what failed, with no text of the database', () => {
    const failed = collector.spans.filter(({ status }) => status.code === 2)
    expect(failed.map(({ name, attributes }) => [name, attributes['error.type']]).sort()).toEqual([
      ['GET /profile', '503'],
      ['coatcheck read', 'Error'],
    ])
    const told = JSON.stringify([collector.spans, [...collector.metrics]])
    expect(told).not.toMatch(/db\.internal|evil|\.env|[\w-]{43}/)
  })

  it('counts lookups, touches, conflicts, events and thefts', () => {
    const { found, none, error } = COUNTED.read
    expect(collector.counted('coatcheck.lookups', 'coatcheck.outcome')).toEqual({ found: found + 20, none, error })
    expect(collector.counted('coatcheck.touches', 'coatcheck.outcome')).toEqual({ touched: 1 })
    expect(collector.counted('coatcheck.conflicts', 'db.operation.name')).toEqual({ update: 1 })
    expect(collector.counted('coatcheck.thefts')).toEqual({ '': 1 })
    expect(collector.counted('coatcheck.events', 'coatcheck.event.type', 'coatcheck.event.reason')).toEqual({
      'created login': 3 + 20,
      'created remembered': 1,
      'destroyed logout': 1,
      'destroyed theft': 1,
      'remember-theft none': 1,
      'request-refused cross-origin': 3,
      'request-refused insecure': 1,
      'store-error none': 1,
    })
  })

  it('measures calls and requests by the names and units of the semantic conventions', () => {
    for (const name of ['db.client.operation.duration', 'http.server.request.duration']) {
      const { unit, points } = collector.metrics.get(name)!
      expect([name, unit]).toEqual([name, 's'])
      for (const { value, sum } of points) expect([value > 0, sum! > 0]).toEqual([true, true])
    }
    const calls = collector.counted('db.client.operation.duration', 'db.operation.name', 'error.type')
    expect(calls).toMatchObject({ 'read ': COUNTED.read.found + COUNTED.read.none + 20, 'read Error': 1, 'update ': 4 })
    const requests = collector.counted(
      'http.server.request.duration',
      'http.request.method',
      'http.route',
      'http.response.status_code',
    )
    expect(requests).toMatchObject({ 'POST /login 200': 23, 'POST /login 403': 4, 'GET /profile 503': 1 })
  })

  it('counts the live sessions, and the sessions that one command read', () => {
    // That of the conflict, those of the crowd, and the one whose cookie the browser dropped: the others ended.
    expect(collector.counted('coatcheck.sessions.live')).toEqual({ '': 22 })
    const sizes = collector.metrics.get('coatcheck.shared_read.keys')
    expect(sizes?.points.map(({ sum }) => sum)).toEqual([COUNTED.read.found + COUNTED.read.none + 20])
  })
})
