// The keys of req.session as texts. Comparing them finds every change, also deep inside of a value.
import { SessionError } from '../contract/errors.ts'

/** The JSON of each key. A key whose value JSON leaves out, such as a function, is absent. */
export type Texts = ReadonlyMap<string, string>

/** Names of members of req.session: they are never data, whatever a store has under them. */
export const MEMBERS: ReadonlySet<string> = new Set([
  ...['id', 'req', 'cookie', 'regenerate', 'save', 'destroy', 'reload', 'touch', 'resetMaxAge'],
])

const refuse = (key: string, reason: string, cause?: unknown) =>
  new SessionError('ERR_SESSION_DATA', `req.session.${key}: ${reason}`, { cause })

/**
 * The texts that express-session would store: `JSON.stringify` of each value, which asks a `toJSON` method first.
 * `members` are no data.
 * @throws SessionError ERR_SESSION_DATA that names the key
 */
export function textsOf(values: object, members = MEMBERS): Texts {
  const texts = new Map<string, string>()
  for (const [key, value] of Object.entries(values)) {
    let text: string | undefined
    try {
      text = JSON.stringify(value)
    } catch (cause) {
      throw refuse(key, `${cause instanceof Error ? cause.message : String(cause)} (store text in its place)`, cause)
    }
    if (text === undefined) continue
    if (members.has(key)) throw refuse(key, 'this name is a member of req.session, data needs another')
    texts.set(key, text)
  }
  return texts
}

/** The data that texts stand for. Defined, not assigned: a key named `__proto__` stays a key, which the codec refuses. */
export const dataOf = (texts: Texts): Record<string, unknown> =>
  Object.fromEntries([...texts].map(([key, text]) => [key, JSON.parse(text)]))

/** The keys that changed: their new values, `undefined` for those that were removed; `null` if none did. */
export function changeOf(now: Texts, before: Texts): Record<string, unknown> | null {
  const changed = [...now].filter(([key, text]) => before.get(key) !== text)
  const removed = [...before.keys()].filter(key => !now.has(key))
  if (changed.length === 0 && removed.length === 0) return null
  return { ...Object.fromEntries(removed.map(key => [key, undefined])), ...dataOf(new Map(changed)) }
}

const isEmpty = (value: unknown): boolean =>
  typeof value === 'object' && value !== null && Object.values(value).every(isEmpty)

/**
 * Whether these texts are worth a session. connect-flash and its like leave `{}` behind when they only looked: a visitor
 * who did nothing else gets no session for that.
 */
export const hasContent = (texts: Texts): boolean => [...texts.values()].some(text => !isEmpty(JSON.parse(text)))
