// What a session keeps beside its data, in the same text: stores know nothing of it, and one without it costs no byte.

export interface Meta {
  /** When the password was verified, epoch ms; `null`: never. Without it: when the session was created. */
  readonly verifiedAt?: number | null
}

const NOTHING: Meta = Object.freeze({})
/** What somebody broke counts as a password that was never verified. */
const BROKEN: Meta = Object.freeze({ verifiedAt: null })
/** No JSON text begins with it. */
const MARK = '@'
const SEALED = /^@(?:v(-|\d{1,16}))?@/

/** The text to store. A codec's text that begins with the mark is told from ours by a mark of its own before it. */
export function seal({ verifiedAt }: Meta, text: string): string {
  const fields = verifiedAt === undefined ? '' : `v${verifiedAt ?? '-'}`
  return fields === '' && !text.startsWith(MARK) ? text : MARK + fields + MARK + text
}

/** What was sealed; the codec is left to refuse the text of what is broken. */
export function unseal(stored: string): { meta: Meta; text: string } {
  if (!stored.startsWith(MARK)) return { meta: NOTHING, text: stored }
  const match = SEALED.exec(stored)
  if (match === null) return { meta: BROKEN, text: stored }
  const [head, verified] = match
  const text = stored.slice(head.length)
  if (verified === undefined) return { meta: NOTHING, text }
  return { meta: { verifiedAt: verified === '-' ? null : Number(verified) }, text }
}
