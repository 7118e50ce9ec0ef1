/** An object as a literal makes it. By shape, not by identity: one of another realm (a vm, a test runner) is plain too. */
export function isPlain(value: unknown): value is Record<string, unknown> {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return false
  const prototype: unknown = Object.getPrototypeOf(value)
  if (prototype === null || prototype === Object.prototype) return true
  // It must have its own isPrototypeOf: an object of Object.create(null), used as a prototype, may have members too.
  return Object.getPrototypeOf(prototype) === null && Object.hasOwn(prototype as object, 'isPrototypeOf')
}

/** Copies the plain objects and arrays in a value; other objects (a codec may allow them) are kept as they are. */
export function copyPlain<T>(value: T): T {
  if (Array.isArray(value)) return value.map(copyPlain) as T
  // fromEntries defines instead of assigning: a key named `__proto__` stays a key.
  if (isPlain(value))
    return Object.fromEntries(Object.entries(value).map(([key, member]) => [key, copyPlain(member)])) as T
  return value
}
