import type { H3Event } from 'h3'

/** The fields of a body; none where it is something else. h3 reads one of any length. */
export async function fields(event: H3Event): Promise<Record<string, unknown>> {
  if (!(Number(getRequestHeader(event, 'content-length')) <= 16_384))
    throw createError({ statusCode: 413, message: 'body_too_large' })
  return Object(await readBody(event, { strict: true }))
}

/** A field of what a client sent: a text, and not a long one. */
export function text(field: unknown): string {
  if (typeof field !== 'string' || field.length > 200 || field.includes('\0'))
    throw createError({ statusCode: 400, message: 'malformed_field' })
  return field
}
