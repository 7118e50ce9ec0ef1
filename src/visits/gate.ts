import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Http2ServerRequest, Http2ServerResponse } from 'node:http2'

/** Looks at a request of node:http, or of node:http2 in the same form, before its handler; `true` if it has answered. */
export interface Gate {
  // Not one overload for each: what may be either (a framework that runs on both) could call neither.
  (request: IncomingMessage | Http2ServerRequest, response: ServerResponse | Http2ServerResponse): boolean
  (request: IncomingMessage, response: ServerResponse): boolean
}
