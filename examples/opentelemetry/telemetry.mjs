// @ts-check
// OpenTelemetry: the SDK, and what it is told of sessions. It sends to the collector at OTEL_EXPORTER_OTLP_ENDPOINT, by
// default the one of this machine. Attributes are words of the library: never a key, a user or what a client wrote.
import { subscribe } from 'node:diagnostics_channel'
import { metrics, SpanKind, SpanStatusCode, trace } from '@opentelemetry/api'
import { OTLPMetricExporter } from '@opentelemetry/exporter-metrics-otlp-http'
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http'
import { resourceFromAttributes } from '@opentelemetry/resources'
import { MeterProvider, PeriodicExportingMetricReader } from '@opentelemetry/sdk-metrics'
import { BatchSpanProcessor, NodeTracerProvider } from '@opentelemetry/sdk-trace-node'
import { observedStore } from '../observed-store.mjs'

const resource = resourceFromAttributes({ 'service.name': process.env.OTEL_SERVICE_NAME ?? 'coatcheck-example' })
const spans = new NodeTracerProvider({ resource, spanProcessors: [new BatchSpanProcessor(new OTLPTraceExporter())] })
const reader = new PeriodicExportingMetricReader({ exporter: new OTLPMetricExporter() }) // once a minute
const meters = new MeterProvider({ resource, readers: [reader] })
spans.register() // from here on what a request calls knows the request's span
metrics.setGlobalMeterProvider(meters)

/** Sends what is still here. */
export const stopTelemetry = () => Promise.all([spans.shutdown(), meters.shutdown()])

const tracer = trace.getTracer('coatcheck')
const meter = metrics.getMeter('coatcheck')
// The bounds of the semantic conventions, in seconds.
const seconds = { unit: 's', advice: { explicitBucketBoundaries: [0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10] } }

const durations = meter.createHistogram('db.client.operation.duration', seconds)
const lookups = meter.createCounter('coatcheck.lookups', { unit: '{lookup}' })
const touches = meter.createCounter('coatcheck.touches', { unit: '{touch}' })
const conflicts = meter.createCounter('coatcheck.conflicts', { unit: '{conflict}' })
/** @type {Record<string, typeof lookups>} */
const counters = { read: lookups, touch: touches }

/**
 * A span for each call to the store, below that of the request; the spans of the database's own instrumentation are below
 * it. Where that one measures `db.client.operation.duration` too, leave it out here.
 * @param {import('coatcheck').Store} store
 * @param {string} system `db.system.name`: 'redis', 'postgresql', 'mysql', 'sqlite'
 */
export const traced = (store, system) =>
  observedStore(store, (operation, run) => {
    const asked = { 'db.system.name': system, 'db.operation.name': operation }
    return tracer.startActiveSpan(`coatcheck ${operation}`, { kind: SpanKind.CLIENT, attributes: asked }, span => {
      const begun = performance.now()
      return run((outcome, error) => {
        const failed = outcome === 'error' && { 'error.type': error instanceof Error ? error.name : '_OTHER' }
        durations.record((performance.now() - begun) / 1000, { ...asked, ...failed })
        counters[operation]?.add(1, { 'coatcheck.outcome': outcome })
        if (outcome === 'conflict') conflicts.add(1, { 'db.operation.name': operation })
        span.setAttributes({ 'coatcheck.outcome': outcome, ...failed })
        if (failed) span.setStatus({ code: SpanStatusCode.ERROR })
        span.end()
      })
    })
  })

const sizes = meter.createHistogram('coatcheck.shared_read.keys', {
  unit: '{key}',
  advice: { explicitBucketBoundaries: [1, 2, 4, 8, 16, 32, 64, 100] },
})
subscribe('coatcheck:shared-read', message => {
  sizes.record(/** @type {{ keys: number }} */ (message).keys)
})

const events = meter.createCounter('coatcheck.events', { unit: '{event}' })
const thefts = meter.createCounter('coatcheck.thefts', { unit: '{theft}' })
// From the start at 0: where the first theft made the time series, an alarm would see no increase.
thefts.add(0)

/** @param {import('coatcheck').SessionEvent} event */
function reasonOf(event) {
  if (event.type === 'created') return event.remembered ? 'remembered' : event.userId === null ? 'anonymous' : 'login'
  return 'reason' in event ? event.reason : 'none'
}
// The events of all managers in this process; `onEvent` of a manager hears its own.
subscribe('coatcheck', message => {
  const event = /** @type {import('coatcheck').SessionEvent} */ (message)
  const told = { 'coatcheck.event.type': event.type, 'coatcheck.event.reason': reasonOf(event) }
  events.add(1, told)
  if (event.type === 'remember-theft') thefts.add(1)
  trace.getActiveSpan()?.addEvent(`coatcheck ${event.type}`, told)
})

/**
 * How many sessions are live in the store, by all processes: a graph shows the `max` of them, not the sum. Asked for when
 * the reader exports, once a minute: some stores walk over all sessions to count them.
 * @param {() => Promise<number>} count
 */
export function gaugeLive(count) {
  meter.createObservableGauge('coatcheck.sessions.live', { unit: '{session}' }).addCallback(async result => {
    // A store that is down is a 'store-error', and no value.
    const found = await count().catch(() => null)
    if (found !== null) result.observe(found)
  })
}

export const requests = meter.createHistogram('http.server.request.duration', seconds)
