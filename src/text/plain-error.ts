const FIELDS = ['code', 'errno', 'sqlState', 'severity', 'table', 'column', 'constraint', 'syscall', 'address', 'port']

/**
 * A driver's error without what the driver hung on it: a statement's values, the arguments of a command, a whole row. A log
 * of it says what failed and where. `clean` takes out of its texts what they must not show.
 */
export function plainError(error: unknown, clean: (text: string) => string, depth = 0): Error {
  const given = error instanceof Error ? error : new Error(String(error))
  const plain = new Error(clean(given.message))
  if (given.name !== 'Error') Object.defineProperty(plain, 'name', { value: given.name })
  const frames = given.stack?.split('\n').filter(line => /^\s+at /.test(line)) ?? []
  plain.stack = [`${given.name}: ${plain.message}`, ...frames].join('\n')
  for (const field of FIELDS) {
    const value = (given as unknown as Record<string, unknown>)[field]
    if (typeof value === 'string' || typeof value === 'number') Object.assign(plain, { [field]: value })
  }
  if (depth > 3) return plain
  if (given.cause !== undefined) plain.cause = plainError(given.cause, clean, depth + 1)
  // A host with several addresses: why each of them failed.
  if (given instanceof AggregateError)
    Object.assign(plain, { errors: given.errors.map(each => plainError(each, clean, depth + 1)) })
  return plain
}
