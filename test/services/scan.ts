import { inspect } from 'node:util'

/** All that a log, a debugger or a careless `JSON.stringify` would show of a value. */
export function shown(value: unknown): string {
  const texts = [
    inspect(value, { depth: 12, showHidden: true, getters: false, maxArrayLength: null, maxStringLength: null }),
  ]
  for (const make of [
    () => JSON.stringify(value, (_, member) => (typeof member === 'bigint' ? `${member}` : member)),
    () => String(value),
    () => inspect({ ...(value as object) }, { depth: 12 }),
    () => inspect(Object.assign({}, value), { depth: 12 }),
    () => inspect(structuredClone({ ...(value as object) }), { depth: 12 }),
    () => (value instanceof Error ? `${value.stack} ${shown(value.cause)}` : ''),
  ]) {
    try {
      texts.push(make() ?? '')
    } catch {
      // What cannot be shown shows nothing.
    }
  }
  return texts.join('\n')
}

/** The first of the secrets that appears in what a value shows, shortened; `null` where none does. */
export function leaked(value: unknown, secrets: Iterable<string>): string | null {
  const text = shown(value)
  for (const secret of secrets)
    if (text.includes(secret) || text.includes(secret.slice(3))) return `${secret.slice(0, 6)}…`
  return null
}
