import type { IncomingHttpHeaders, IncomingMessage } from 'node:http'

/** A request of node:http, or of the Fetch API. */
export type Asked = Pick<IncomingMessage, 'method' | 'headers'> | Pick<Request, 'method' | 'headers' | 'url'>

export const headerOf = ({ headers }: Asked, name: string): string | null | undefined =>
  typeof headers.get === 'function'
    ? (headers as Headers).get(name)
    : ((headers as IncomingHttpHeaders)[name] as string | undefined)

/** HTTP/2 has a pseudo-header in place of `Host` (RFC 9113, section 8.3.1), a `Request` its URL. */
export const hostOf = (request: Asked): string | null | undefined =>
  headerOf(request, 'host') ??
  (typeof request.headers.get === 'function' ? new URL((request as Request).url).host : headerOf(request, ':authority'))
