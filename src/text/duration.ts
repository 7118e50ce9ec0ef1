import { type Rule, refuse } from './check-options.ts'

/** A length of time with its unit. A bare number is a `TypeError`: express-session counts ms, cookies count s. */
export type Duration = `${number}${'ms' | 's' | 'm' | 'h' | 'd'}`

const UNIT = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const

/**
 * The milliseconds of a duration such as `'500ms'`, `'30m'` or `'12h'`; `name` is the option that the error names.
 * @throws TypeError that quotes the value and shows the right form
 */
export function milliseconds(value: Duration, name: string): number {
  const match = typeof value === 'string' ? /^(\d+(?:\.\d+)?)(ms|s|m|h|d)$/.exec(value) : null
  const ms = match ? Math.round(Number(match[1]) * UNIT[match[2] as keyof typeof UNIT]) : Number.NaN
  // 100 years keep every sum of instants an exact integer.
  if (!(ms >= 1 && ms <= 100 * 365 * UNIT.d))
    refuse(name, "a duration with its unit, such as '500ms', '30m' or '12h' (more than 0, at most 100 years)", value)
  return ms
}

export const aDuration: Rule = (value, name) => {
  milliseconds(value as Duration, name)
}

/** A duration that is not longer than `max`; `reason` follows it in the message. */
export const durationUpTo =
  (max: Duration, reason = ''): Rule =>
  (value, name) => {
    if (milliseconds(value as Duration, name) > milliseconds(max, 'max'))
      refuse(name, `at most '${max}'${reason}`, value)
  }
