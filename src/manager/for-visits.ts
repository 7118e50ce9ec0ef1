// What a visit asks of its manager beside the public methods: what this process remembers of its browser, and what spares
// it a second read.
import { keyOf, type SessionId, type SessionKey } from '../session/id.ts'
import { type AnySession, recordOf, type Session } from '../session/session.ts'
import type { UserIds } from '../session/user-id.ts'
import { quote } from '../text/quote.ts'
import { type AnyContext, type Context, contextOf } from './context.ts'
import { takeKey } from './edit.ts'
import type { SessionEvent } from './events.ts'
import { held } from './lookup.ts'
import { parseToken } from './series.ts'
import { touch } from './touch.ts'

// Registered: the visit and its manager may be of two copies of this package (its ESM and its CommonJS build). The number
// rises when the answer changes.
const FOR_VISITS = Symbol.for('coatcheck.for-visits.1')

export class ForVisits<Data extends object, Ids extends UserIds> {
  readonly #context: Context<Data, Ids>

  constructor(context: Context<Data, Ids>) {
    this.#context = context
  }

  /** How long a browser is remembered, in ms; `null` if remember tokens are off. */
  get rememberFor(): number | null {
    return this.#context.options.rememberFor
  }

  keyOf(id: SessionId): SessionKey {
    return this.#context.keyOf(id)
  }

  now(): number {
    return this.#context.now()
  }

  emit(event: SessionEvent<Ids>): void {
    this.#context.emit(event)
  }

  /**
   * Whether the browser that sent this session ID or remember token has logged in or out with it in this process lately, or
   * got a new ID for it: then nothing may begin in its place.
   */
  isLeft(idOrToken: string): boolean {
    return this.#context.endings.isLeft(keyFor(this.#context, idOrToken))
  }

  /**
   * Whether this session, or the series of this remember token, has ended in this process lately; with its user's other
   * sessions, if that was after `since`.
   */
  hasEnded(what: AnySession | string, since = Number.POSITIVE_INFINITY): boolean {
    const { endings } = this.#context
    if (typeof what === 'string') return endings.isOver(keyFor(this.#context, what))
    return endings.hasEnded(recordOf(what)!, since)
  }

  /** Writes down that a session is in use that was read with `touch: false`; `null` if nothing is due. */
  touch(session: Session<Data, Ids>): Promise<Session<Data, Ids> | null> | null {
    const context = this.#context
    return touch(context, held(context, session), context.now(), context.deadline())
  }

  /** As `take` of the manager; answers the session as it is then, too. */
  take<N extends keyof Data & string>(
    session: Session<Data, Ids>,
    name: N,
  ): Promise<{ session: Session<Data, Ids> | null; value: Data[N] | undefined }> {
    return takeKey(this.#context, session, name)
  }
}

const keyFor = (context: AnyContext, idOrToken: string): string =>
  parseToken(context.namespace, idOrToken)?.key ?? keyOf(idOrToken, context.space)

/** Lets the visits of each copy of the package ask the managers of this class. */
export function offerToVisits(prototype: object): void {
  // Not a declared member: types show no way to it.
  Object.defineProperty(prototype, FOR_VISITS, {
    value(this: object) {
      return new ForVisits(contextOf(this))
    },
  })
}

/** @throws TypeError for anything but a manager */
export function forVisits<Data extends object, Ids extends UserIds>(sessions: object): ForVisits<Data, Ids> {
  const answer = (sessions as { [FOR_VISITS]?: () => ForVisits<Data, Ids> } | null | undefined)?.[FOR_VISITS]
  if (typeof answer !== 'function')
    throw new TypeError(
      `expected a SessionManager, got ${quote(sessions)} (two versions of coatcheck in one process do not know each other: npm ls coatcheck)`,
    )
  return answer.call(sessions)
}
