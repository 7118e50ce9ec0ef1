// Errors for people: one line, without passwords, without control characters.

/** The exit codes; the table in docs/command.md is compared with them. */
export const EXIT = { done: 0, failed: 1, usage: 2, interrupted: 130, terminated: 143 } as const
export type ExitCode = (typeof EXIT)[keyof typeof EXIT]

/** The command line is wrong; nothing was begun. The message is all that its writer needs. */
export class UsageError extends Error {}

/** The message of an error about the command line; `null` for any other. Stores and managers name their options as we do. */
export function usageIn(error: unknown): string | null {
  if (error instanceof UsageError) return error.message
  const isOption = error instanceof TypeError && /^(?:table|schema|prefix|namespace): /.test(error.message)
  return isOption ? `--${error.message}` : null
}

/** It could not be done; the message is for people, without secrets. */
export class Failure extends Error {}

/** Foreign text in our output, JSON too: what would steer a terminal, or turn the line around, is shown as JSON escapes. */
export const plain = (text: string): string =>
  text.replaceAll(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, character =>
    character.replaceAll(/[\s\S]/g, unit => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`),
  )

type Told = Readonly<Partial<Record<'message' | 'code' | 'cause' | 'errors', unknown>>>

/** The message of an error, with those of its causes. */
export function messageOf(error: unknown): string {
  const said: string[] = []
  let told = error as Told | null | undefined
  for (let depth = 0; typeof told === 'object' && told !== null && depth < 4; depth++) {
    // A host with several addresses has a reason for each, and no message of its own.
    const [first] = Array.isArray(told.errors) ? (told.errors as Told[]) : []
    const text = String(told.message || first?.message || told.code || first?.code || '').trim()
    if (text !== '' && !said.some(before => before.includes(text))) said.push(text)
    told = told.cause as Told | undefined
  }
  return plain(said.length === 0 ? String(error) : said.join(': ').replaceAll(/\s*\n\s*/g, ' '))
}

/** The same, without the message if it contains one of the secrets. */
export function safeMessageOf(error: unknown, secrets: readonly string[]): string {
  const message = messageOf(error)
  if (!secrets.some(secret => message.includes(secret) || message.includes(plain(secret)))) return message
  const { code, name } = (error ?? {}) as { code?: unknown; name?: unknown }
  const shown = [code, name].map(each => String(each ?? '')).find(each => /^[A-Z][A-Za-z0-9_]{1,40}$/.test(each))
  return `${shown === undefined || secrets.includes(shown) ? 'it failed' : shown} (the driver's message is not shown: it contains the password)`
}
