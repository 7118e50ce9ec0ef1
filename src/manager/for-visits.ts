// What a visit asks of its manager beside the public methods: what this process remembers of its browser, and what spares
// it a second read.
import { keyOf, type SessionId, type SessionKey } from '../session/id.ts'
import { type AnySession, recordOf, type Session } from '../session/session.ts'
import type { UserIds } from '../session/user-id.ts'
import { type Context, contextOf } from './context.ts'
import type { SessionEvent } from './events.ts'
import { held } from './lookup.ts'
import { parseToken } from './series.ts'
import { touch } from './touch.ts'
import { takeKey } from './write.ts'

export class ForVisits<Data extends object, Ids extends UserIds> {
  readonly #context: Context

  constructor(context: Context) {
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

  /** Whether the session of this ID lives on under a new one that was given in this process lately. */
  goesOn(id: SessionId): boolean {
    return this.#context.endings.goesOn(this.keyOf(id))
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

  /** `next` began in the place of `before`, which has ended. */
  replaced(before: AnySession, next: AnySession): void {
    this.#context.endings.replaced(before.key, next.key)
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
    return takeKey(this.#context, session, name) as Promise<{
      session: Session<Data, Ids> | null
      value: Data[N] | undefined
    }>
  }
}

const keyFor = (context: Context, idOrToken: string): string =>
  parseToken(context.namespace, idOrToken)?.key ?? keyOf(idOrToken, context.space)

/** @throws TypeError for anything but a manager */
export const forVisits = <Data extends object, Ids extends UserIds>(sessions: object): ForVisits<Data, Ids> =>
  new ForVisits(contextOf(sessions))
