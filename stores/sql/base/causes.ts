const FIELDS = ['code', 'errno', 'sqlState', 'severity', 'table', 'column', 'constraint', 'syscall', 'address', 'port']
// How the databases quote a statement's values: "Duplicate entry '…'", "invalid input syntax for type bigint: …".
const QUOTED = /\b(entry|value:?|type [^:'"]+:) (?:'[\s\S]*'|"[\s\S]*")/g

/**
 * A driver's error without the values of its statement: PostgreSQL names whole rows in `detail`, MySQL quotes values in
 * messages. A log of the cause says what failed and where, and contains no user's session.
 */
export function withoutValues(error: unknown, depth = 0): Error {
  const given = error instanceof Error ? error : new Error(String(error))
  const cleaned = new Error(given.message.replace(QUOTED, '$1 …'))
  if (given.name !== 'Error') Object.defineProperty(cleaned, 'name', { value: given.name })
  const frames = given.stack?.split('\n').filter(line => /^\s+at /.test(line)) ?? []
  cleaned.stack = [`${given.name}: ${cleaned.message}`, ...frames].join('\n')
  for (const field of FIELDS) {
    const value = (given as unknown as Record<string, unknown>)[field]
    if (typeof value === 'string' || typeof value === 'number') Object.assign(cleaned, { [field]: value })
  }
  if (depth > 3) return cleaned
  if (given.cause !== undefined) cleaned.cause = withoutValues(given.cause, depth + 1)
  // A host with several addresses: why each of them failed.
  if (given instanceof AggregateError)
    Object.assign(cleaned, { errors: given.errors.map(each => withoutValues(each, depth + 1)) })
  return cleaned
}
