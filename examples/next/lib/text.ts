/** A field of what a client sent: a text that is not long; anything else is the empty text, which is nobody's. */
export const text = (field: unknown): string =>
  typeof field === 'string' && field.length <= 200 && !field.includes('\0') ? field : ''
