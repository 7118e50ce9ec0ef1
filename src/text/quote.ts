// A value in the wrong place may be a session ID, a token, or a URL with a password, and errors are logged.
const SECRET = /[A-Za-z0-9_-]{43}/

/**
 * A URL anywhere in the text (`REDIS_URL=redis://…`, `file:app.db?key=…`) that has a user or parameters. An origin has neither,
 * and is shown, because whoever corrects it has to see it.
 */
const URL_WITH_SECRET = /:\/\/[\s\S]*[?@]|[a-z][a-z0-9+.-]*:\S*[?@]/i

/** A value as an error message shows it: short, on one line, with its type if that is not plain. */
export function quote(value: unknown): string {
  if (typeof value === 'string' && SECRET.test(value))
    return `${value.length} characters (not shown: it may be a secret)`
  if (typeof value === 'string' && URL_WITH_SECRET.test(value)) return 'a URL (not shown: it may contain a password)'
  if (typeof value === 'string')
    return value.length > 60 ? `${JSON.stringify(value.slice(0, 60))}…` : JSON.stringify(value)
  if (typeof value === 'bigint') return `${value}n`
  if (typeof value === 'function') return 'a function'
  if (typeof value === 'object' && value !== null) return Array.isArray(value) ? 'an array' : 'an object'
  return Object.is(value, -0) ? '-0' : String(value)
}
