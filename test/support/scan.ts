import { inspect } from 'node:util'
import { type Duration, type SessionEvent, SessionManager, type Store } from 'coatcheck'
import { managerCalls } from './manager-calls.ts'

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

/** As many characters of a secret as no chance repeats: whoever has that many was shown a part of it. */
const PART = 20

/** Whether a text holds a secret or, of a long one, any 20 characters in a row. */
export function holdsPartOf(secret: string, text: string): boolean {
  for (let at = 0; at + PART <= secret.length; at += 1) if (text.includes(secret.slice(at, at + PART))) return true
  return text.includes(secret)
}

/** The first of the secrets that appears in what a value shows, in part too, shortened; `null` where none does. */
export function leaked(value: unknown, secrets: Iterable<string>): string | null {
  const text = shown(value)
  for (const secret of secrets) if (holdsPartOf(secret, text)) return `${secret.slice(0, 6)}…`
  return null
}

/** A name and data that no error, event or log may show; `leaked(value, PRIVATE)` looks for them. */
export const PRIVATE = ['Ada Private-Name', 'private: the data of ada'] as const
const [name, data] = PRIVATE

/**
 * Logs a user in with that name and data, breaks the store, and calls every verb of a manager on it. Answers what a
 * log would get: each error that a call rejected with, by verb, and all events.
 */
export async function failuresOf(
  store: Store,
  sabotage: () => unknown,
  storeTimeout: Duration = '200ms',
): Promise<{ errors: Record<string, unknown>; events: unknown[] }> {
  const events: SessionEvent<'bigint'>[] = []
  const managerWith = (timeout: Duration) =>
    new SessionManager<{ text?: string }>({
      store,
      storeTimeout: timeout,
      rememberFor: '30d',
      sweepInterval: false,
      onEvent: event => events.push(event),
    })
  const login = { user: { id: 4_242_424_242, name }, data: { text: data } }
  // While the store works, a machine that is slow must fail nothing.
  const before = managerWith('30s')
  const session = await before.logIn(null, login)
  const token = await before.issueRememberToken(session)
  await sabotage()
  const sessions = managerWith(storeTimeout)
  const held = { session, token, login, change: { text: `more ${data}` }, everywhere: { minPasswordVersion: 1 } }
  const errors: Record<string, unknown> = {}
  for (const [name, , run] of managerCalls())
    await run(sessions, held).catch((error: unknown) => (errors[name] = error))
  await sessions.close().catch(() => {})
  return { errors, events }
}
