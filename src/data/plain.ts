/** An object as a literal makes it. By shape, not by identity: one of another realm (a vm, a test runner) is plain too. */
export function isPlain(value: unknown): value is Record<string, unknown> {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return false
  const prototype: unknown = Object.getPrototypeOf(value)
  if (prototype === null || prototype === Object.prototype) return true
  // An own isPrototypeOf: a prototype made with Object.create(null) may hand down members of its own.
  return Object.getPrototypeOf(prototype) === null && Object.hasOwn(prototype as object, 'isPrototypeOf')
}

/** A copy of the plain objects and arrays in a value; what else there is (a codec may allow it) is taken as it is. */
export function copyPlain<T>(value: T): T {
  if (Array.isArray(value)) return value.map(copyPlain) as T
  // fromEntries defines instead of assigning: a key named `__proto__` stays a key.
  if (isPlain(value))
    return Object.fromEntries(Object.entries(value).map(([key, member]) => [key, copyPlain(member)])) as T
  return value
}
