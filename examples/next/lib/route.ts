import { SessionError, type VisitOf } from 'coatcheck'
import { type sessions, visits } from './sessions'

/** A route handler with the visit of its request; errors are answered in JSON. */
export const route =
  (handler: (visit: VisitOf<typeof sessions>, request: Request) => Promise<Response>) => (request: Request) =>
    visits.handle(request, visit =>
      handler(visit, request).catch(error => {
        if (!(error instanceof SessionError)) throw error
        if (error.status >= 500) console.error(error) // the details are for the log alone
        return error.getResponse()
      }),
    )

export const refusal = (status: number, error: string) => Response.json({ error }, { status })

/** The body as JSON, or the answer to one that is none, or too large. */
export async function readJson(request: Request): Promise<Record<string, unknown> | Response> {
  if (!(Number(request.headers.get('content-length') ?? Number.NaN) <= 16_384)) return refusal(413, 'body_too_large')
  return request.json().then(
    body => Object(body),
    () => refusal(400, 'malformed_body'),
  )
}
