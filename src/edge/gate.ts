import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Http2ServerRequest, Http2ServerResponse } from 'node:http2'

/** Looks at a request of node:http, or of node:http2 in the same form, before its handler; `true` where it has answered. */
export interface Gate {
  (request: Http2ServerRequest, response: Http2ServerResponse): boolean
  (request: IncomingMessage, response: ServerResponse): boolean
}
