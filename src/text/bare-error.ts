// Errors of drivers without what they hang on them: the values of a statement, the arguments of a command, an ID.
const FIELDS = ['code', 'errno', 'sqlState', 'severity', 'table', 'column', 'constraint', 'syscall', 'address', 'port']

/**
 * An error whose texts `bare` has gone over: its message, where it was thrown, a few fields that name no value, and the same
 * of its causes. A log of it says what failed and where.
 */
export function bareError(error: unknown, bare: (text: string) => string, depth = 0): Error {
  const given = error instanceof Error ? error : new Error(String(error))
  const cleaned = new Error(bare(given.message))
  if (given.name !== 'Error') Object.defineProperty(cleaned, 'name', { value: given.name })
  const frames = given.stack?.split('\n').filter(line => /^\s+at /.test(line)) ?? []
  cleaned.stack = [`${given.name}: ${cleaned.message}`, ...frames.map(bare)].join('\n')
  for (const field of FIELDS) {
    const value = (given as unknown as Record<string, unknown>)[field]
    if (typeof value === 'string' || typeof value === 'number') Object.assign(cleaned, { [field]: value })
  }
  if (depth > 3) return cleaned
  if (given.cause !== undefined) cleaned.cause = bareError(given.cause, bare, depth + 1)
  // A host with several addresses: why each of them failed.
  if (given instanceof AggregateError)
    Object.assign(cleaned, { errors: given.errors.map(each => bareError(each, bare, depth + 1)) })
  return cleaned
}
