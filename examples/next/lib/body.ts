export const refusal = (status: number, error: string) => Response.json({ error }, { status })

/** The body as JSON, or the answer to one that is none, or too large: Next has no limit. */
export async function readJson(request: Request): Promise<Record<string, unknown> | Response> {
  if (!(Number(request.headers.get('content-length') ?? Number.NaN) <= 16_384)) return refusal(413, 'body_too_large')
  return request.json().then(
    body => Object(body),
    () => refusal(400, 'malformed_body'),
  )
}
