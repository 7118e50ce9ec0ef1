// A remember-me series: what a device's remember tokens have in common, stored as one record.
import { timingSafeEqual } from 'node:crypto'
import type { SessionRecord } from '../contract/store.ts'
import { hashOf, isKey, keyOf, newWriteId, type SessionKey } from '../session/id.ts'
import type { AnyContext } from './context.ts'
import { isOutdated } from './password-version.ts'

const ENDS = ['logout', 'revoked', 'theft'] as const
/** Why a series ends. */
export type SeriesEnd = (typeof ENDS)[number]

/** What a series keeps as its record's data. */
export interface Series {
  /** Hash of the verifier that is good now. */
  readonly current: string
  /** Hash of the one that was spent last, and the salt of what followed from it. */
  readonly previous: string | null
  readonly salt: string
  /** When the spent one was last found good for the answer that it gives. */
  readonly rotatedAt: number
  /** Key and `createdAt` of the session that the last rotation started, and when that session was first used. */
  readonly session: string | null
  readonly createdAt: number
  readonly visitedAt: number | null
  /** Whether the answer to the rotation before was lost: the sessions of earlier rotations have to end. */
  readonly endsEarlier?: true | undefined
  /** `createdAt` of the session that asked for the token: the same device. */
  readonly origin: number
  /** Of one whose sessions are being ended, under another key: the key that it had, and why. */
  readonly ending?: { readonly key: string; readonly reason: SeriesEnd }
}

const TOKEN = /^([A-Za-z0-9_-]{43})\.([A-Za-z0-9_-]{43})$/

/** The parts of a remember token, and the key of its series; `null` for what cannot be one. */
export function parseToken(
  namespace: string | null,
  token: string,
): { key: SessionKey; selector: string; verifier: string } | null {
  const match = typeof token === 'string' && token.length === 87 ? TOKEN.exec(token) : null
  if (match === null) return null
  const [, selector, verifier] = match as unknown as [string, string, string]
  return { key: seriesKey(namespace, selector), selector, verifier }
}

/** A session ID offered as a token, or the reverse, leads nowhere. */
export const seriesKey = (namespace: string | null, selector: string): SessionKey =>
  keyOf(selector, `remember\0${namespace ?? ''}`)

/** Whether a verifier is the one that a series keeps the hash of. */
export function isVerifier(verifier: string, hash: string | null): boolean {
  const presented = hashOf(verifier)
  return hash !== null && hash.length === presented.length && timingSafeEqual(Buffer.from(presented), Buffer.from(hash))
}

const isText = (value: unknown) => typeof value === 'string'
const isNumber = (value: unknown) => typeof value === 'number'
const FIELDS: { readonly [Name in keyof Required<Series>]: (value: unknown) => boolean } = {
  current: isText,
  previous: value => value === null || isText(value),
  salt: isText,
  rotatedAt: isNumber,
  session: value => value === null || isText(value),
  createdAt: isNumber,
  visitedAt: value => value === null || isNumber(value),
  endsEarlier: value => value === undefined || value === true,
  origin: isNumber,
  ending: value => value === undefined || isEnding(value as NonNullable<Series['ending']>),
}
const isEnding = ({ key, reason }: NonNullable<Series['ending']>) => isKey(key) && ENDS.includes(reason)

/** `null` for what no manager of ours wrote. */
export function parseSeries(text: string): Series | null {
  try {
    const series = JSON.parse(text)
    return Object.entries(FIELDS).every(([name, isSound]) => isSound(series[name])) ? series : null
  } catch {
    return null
  }
}

/** The live series under a key; or the key that it was moved to, if its end is not finished. */
export async function readSeries(
  context: AnyContext,
  key: string,
  deadline: number,
): Promise<{ record: SessionRecord; series: Series } | { movedTo: string } | null> {
  const call = context.call(deadline)
  const { record, corrupt, forward } = await context.calls.read(key, call)
  const tell = (cause: string) => context.emit({ type: 'corrupt-record', key: key as SessionKey, cause })
  if (corrupt !== null) tell(corrupt)
  if (forward !== null) return forward
  if (record === null || record.kind !== 'remember' || !(record.expiresAt > call.now)) return null
  const series = parseSeries(record.data)
  if (series === null || context.userIdOf(record) === null) {
    await context.calls.delete(key, call)
    tell('not a remember-me series')
    return null
  }
  return (await isOutdated(context, record, deadline)) ? null : { record, series }
}

export function writeSeries(
  context: AnyContext,
  { key, version, expiresAt }: SessionRecord,
  series: Series,
  now: number,
  deadline: number,
): Promise<'updated' | 'conflict' | 'gone'> {
  const change = { data: JSON.stringify(series), seenAt: now, expiresAt, writeId: newWriteId() }
  return context.calls.update(key, version, change, { now, deadline })
}
