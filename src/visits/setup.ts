import { contextOf } from '../manager/context.ts'
import { DEFAULTS } from '../manager/options.ts'
import { checkOptions, type OptionsOf, type Rule } from '../text/check-options.ts'
import { OPTION_HINTS, REMEMBER_COOKIE_HINTS } from '../text/option-hints.ts'
import { quote } from '../text/quote.ts'
import { aCookieName, type CookieOptions, checkCookie, SessionCookie } from './cookie.ts'
import { exactOrigins } from './cross-origin.ts'
import type { Advice } from './errors.ts'

/** The options that visits of every server have. */
export interface VisitOptions {
  /** The session cookie: its name, how long it lasts, and which requests carry it. @default {} */
  cookie?: CookieOptions
  /** The remember token's cookie: its name. Its other attributes are the session cookie's. @default { name: 'remember_token' } */
  rememberCookie?: { name: string }
  /** Other origins whose pages may send unsafe requests, exactly as in `Origin`. @default none */
  trustedOrigins?: readonly string[]
}

const REMEMBER_COOKIE: OptionsOf<NonNullable<VisitOptions['rememberCookie']>> = {
  where: 'rememberCookie',
  prefix: 'rememberCookie.',
  required: ['name'],
  hints: REMEMBER_COOKIE_HINTS,
  rules: { name: aCookieName },
}

const RULES: OptionsOf<VisitOptions>['rules'] = {
  cookie: checkCookie,
  rememberCookie: value => checkOptions(REMEMBER_COOKIE, value),
  trustedOrigins: exactOrigins,
}

/** Options, checked once. */
export type VisitsSetup = ReturnType<typeof setUp>

/** `rules`: of the options that this kind of server has beside those of all. @throws TypeError that quotes the option */
export function setUp(sessions: object, options: VisitOptions, advice: Advice, rules: Readonly<Record<string, Rule>>) {
  contextOf(sessions, `${advice.where}: `)
  checkOptions({ where: advice.where, rules: { ...RULES, ...rules }, hints: OPTION_HINTS }, options)
  const cookie = new SessionCookie(options.cookie)
  const { name } = options.rememberCookie ?? DEFAULTS.rememberCookie
  const hostPrefix = /^__host-/i.test(cookie.name)
  const rememberCookie = new SessionCookie({ ...options.cookie, hostPrefix, name })
  if (rememberCookie.name === cookie.name)
    throw new TypeError(`rememberCookie.name: ${quote(cookie.name)} is the session cookie's name`)
  return { cookie, rememberCookie, trustedOrigins: new Set(options.trustedOrigins), advice }
}
