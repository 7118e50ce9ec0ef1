// @ts-check
// Preloaded into a node, this is the leak that the soak has to notice: each request is kept, with its response.
import { subscribe } from 'node:diagnostics_channel'

/** @type {unknown[]} */
const kept = []
subscribe('http.server.request.start', message => {
  kept.push(
    message,
    Array.from({ length: 2000 }, (_, line) => ({ line })),
  )
})
// Reachable as long as the process lives.
Object.assign(globalThis, { kept })
