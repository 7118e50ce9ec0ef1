export const refuse = (status: number, error: string) => Response.json({ error }, { status })

/** The body as JSON. @throws the Response that refuses it */
export async function readJson(request: Request): Promise<Record<string, unknown>> {
  if (!(Number(request.headers.get('content-length') ?? Number.NaN) <= 16_384)) throw refuse(413, 'body_too_large')
  return Object(
    await request.json().catch(() => {
      throw refuse(400, 'malformed_body')
    }),
  )
}

/** A field of what a client sent: a text, and not a long one. @throws the Response that refuses it */
export function text(field: unknown): string {
  if (typeof field !== 'string' || field.length > 200 || field.includes('\0')) throw refuse(400, 'malformed_field')
  return field
}
