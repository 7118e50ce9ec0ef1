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
