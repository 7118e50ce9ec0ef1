import type { H3Event } from 'h3'

/** The fields of a body; none where it is something else. h3 reads one of any length. */
export async function fields(event: H3Event): Promise<Record<string, unknown>> {
  if (!(Number(getRequestHeader(event, 'content-length')) <= 16_384))
    throw createError({ statusCode: 413, message: 'body_too_large' })
  return Object(await readBody(event, { strict: true }))
}
