// Fields that a session keeps in the same text as its data: stores know nothing of them, and a session without them is not longer.
import { isInstant } from '../contract/record.ts'

export interface Meta {
  /** When the password was verified, epoch ms; `null`: never. Without it: when the session was created. */
  readonly verifiedAt?: number | null
  /** 32 bytes in base64url, see csrf.ts. Without it: the session has its first ID. */
  readonly csrf?: string
  /** How long the session may be idle, in ms. Without it: as long as the manager says. */
  readonly idle?: number | undefined
  /** The key under which the session began, from its first new ID on: it tells a device. Without it: the session's own key. */
  readonly firstKey?: string
  /** How many new IDs the session got since an instant, epoch ms: see begin.ts. */
  readonly newIds?: { readonly count: number; readonly since: number }
}

const NOTHING: Meta = Object.freeze({})
/** Broken text counts as a password that was never verified. */
const BROKEN: Meta = Object.freeze({ verifiedAt: null })
/** No JSON text begins with it. */
const FENCE = '@'
const PACKED =
  /^@(?:v(-|\d{1,16}))?(?:c([A-Za-z0-9_-]{43}))?(?:i(\d{1,13}))?(?:f([A-Za-z0-9_-]{46}))?(?:n(\d{1,3})t(\d{1,16}))?@/

/** The text to store. If a codec's text begins with a fence itself, another fence before it tells the two apart. */
export function packMeta({ verifiedAt, csrf, idle, firstKey, newIds }: Meta, text: string): string {
  const fields = [
    verifiedAt === undefined ? '' : `v${verifiedAt ?? '-'}`,
    csrf === undefined ? '' : `c${csrf}`,
    idle === undefined ? '' : `i${idle}`,
    firstKey === undefined ? '' : `f${firstKey}`,
    newIds === undefined ? '' : `n${newIds.count}t${newIds.since}`,
  ].join('')
  return fields === '' && !text.startsWith(FENCE) ? text : FENCE + fields + FENCE + text
}

/** The reverse of `packMeta`. Broken text is left to the codec, which refuses it. */
export function unpackMeta(stored: string): { meta: Meta; text: string } {
  if (!stored.startsWith(FENCE)) return { meta: NOTHING, text: stored }
  const match = PACKED.exec(stored)
  if (match === null) return { meta: BROKEN, text: stored }
  const [head, verified, csrf, idle, firstKey, count, since] = match
  const verifiedAt = verified === '-' ? null : Number(verified ?? 0)
  if (verifiedAt !== null && !isInstant(verifiedAt)) return { meta: BROKEN, text: stored }
  const meta = {
    ...(verified !== undefined && { verifiedAt }),
    ...(csrf !== undefined && { csrf }),
    ...(idle !== undefined && { idle: Number(idle) }),
    ...(firstKey !== undefined && { firstKey }),
    ...(count !== undefined && { newIds: { count: Number(count), since: Number(since) } }),
  }
  return { meta, text: stored.slice(head.length) }
}

/** Tells a device: the same for a session under each of its IDs, and another for each login. */
export const firstKeyOf = ({ key, data }: { readonly key: string; readonly data: string }): string =>
  unpackMeta(data).meta.firstKey ?? key
