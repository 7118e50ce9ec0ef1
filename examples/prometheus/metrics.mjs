// @ts-check
// What Prometheus is told of sessions. The labels are words of the library: never a key, a user or what a client wrote,
// since each new value is a new time series.
import { subscribe } from 'node:diagnostics_channel'
import { Counter, collectDefaultMetrics, Gauge, Histogram } from 'prom-client'
import { observedStore } from '../observed-store.mjs'

collectDefaultMetrics()

const calls = new Histogram({
  name: 'coatcheck_store_call_duration_seconds',
  help: 'Calls to the session store, by method and by what came of them',
  labelNames: ['operation', 'outcome'],
  buckets: [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5],
})
/** @param {import('coatcheck').Store} store */
export const measured = store =>
  observedStore(store, (operation, run) => {
    const stop = calls.startTimer({ operation })
    return run(outcome => {
      stop({ outcome })
    })
  })

const sizes = new Histogram({
  name: 'coatcheck_shared_read_keys',
  help: 'Sessions that one command read, for all requests of one turn of the event loop',
  buckets: [1, 2, 4, 8, 16, 32, 64, 100],
})
subscribe('coatcheck:shared-read', message => {
  sizes.observe(/** @type {{ keys: number }} */ (message).keys)
})

const events = new Counter({
  name: 'coatcheck_events_total',
  help: 'What happened to sessions, see docs/errors-and-events.md',
  labelNames: ['type', 'reason'],
})
// From the start at 0: where the first theft made the time series, Prometheus would see no increase.
for (const reason of ['cross-origin', 'csrf', 'insecure']) events.inc({ type: 'request-refused', reason }, 0)
for (const reason of ['limit', 'stale-login', 'conflict']) events.inc({ type: 'write-refused', reason }, 0)
for (const type of ['remember-theft', 'store-error', 'corrupt-record', 'unsent-cookie', 'ambiguous-cookie'])
  events.inc({ type, reason: '' }, 0)

/** @param {import('coatcheck').SessionEvent} event */
function reasonOf(event) {
  if (event.type === 'created') return event.remembered ? 'remembered' : event.userId === null ? 'anonymous' : 'login'
  return 'reason' in event ? event.reason : ''
}
// The events of all managers in this process; `onEvent` of a manager hears its own.
subscribe('coatcheck', message => {
  const event = /** @type {import('coatcheck').SessionEvent} */ (message)
  events.inc({ type: event.type, reason: reasonOf(event) })
})

/**
 * How many sessions are live in the store, by all processes: a graph shows the `max` of them, not the sum. Asked for once a
 * minute, however often Prometheus comes, since some stores walk over all sessions to count them.
 * @param {() => Promise<number>} count
 */
export function gaugeLive(count) {
  let countedAt = Number.NEGATIVE_INFINITY
  const live = new Gauge({
    name: 'coatcheck_sessions_live',
    help: 'Sessions that are live in the store, counted once a minute',
    async collect() {
      if (performance.now() - countedAt < 60_000) return
      countedAt = performance.now()
      // A store that is down is no reason to hide the other metrics: it is a 'store-error'.
      await count().then(
        found => live.set(found),
        () => live.set(Number.NaN),
      )
    },
  })
}

export const requests = new Histogram({
  name: 'http_request_duration_seconds',
  help: 'Requests, by endpoint and status',
  labelNames: ['endpoint', 'status'],
})
