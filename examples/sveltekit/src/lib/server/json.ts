import { error } from '@sveltejs/kit'

/** The members of a JSON object. SvelteKit itself answers 413 to what is larger than BODY_SIZE_LIMIT. */
export const readJson = async (request: Request): Promise<Record<string, unknown>> =>
  Object(await request.json().catch(cause => error(cause?.status ?? 400, 'malformed_body')))

/** A field of what a client sent: a text, and not a long one. */
export function text(field: unknown): string {
  if (typeof field !== 'string' || field.length > 200 || field.includes('\0')) error(400, 'malformed_field')
  return field
}
