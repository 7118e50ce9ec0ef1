import type { AnyContext } from '../manager/context.ts'
import { parseToken } from '../manager/series.ts'
import type { SessionKey } from '../session/id.ts'
import type { AnySession } from '../session/session.ts'

/**
 * What ended in this process while a request was under way, or shortly before it came: the requests of one browser run in
 * parallel, and all of them write the same cookie. A slow response must not overwrite the cookie of a later login.
 */
export class EndedHere {
  readonly #context: AnyContext
  /** Whether a write of this visit found that the session had ended. */
  #hasEnded = false

  constructor(context: AnyContext) {
    this.#context = context
  }

  noteEnd(): void {
    this.#hasEnded = true
  }

  /** The visit logged out: what it came with no longer matters. */
  reset(): void {
    this.#hasEnded = false
  }

  /** Whether the browser may still get the cookie of this session. */
  allowsCookie(session: AnySession): boolean {
    return !this.#context.endings.has(session)
  }

  /** Whether the browser may still get this remember token. */
  allowsToken(token: string): boolean {
    const { endings, namespace } = this.#context
    // The manager has made it.
    return !endings.isOver(parseToken(namespace, token)!.key)
  }

  /**
   * Whether a remember token may start a session. Not after a parallel request logged in or out, or gave the session its
   * new ID: this response would overwrite the cookie of that one.
   */
  allowsRecall(token: string, keys: readonly SessionKey[]): boolean {
    const { endings, namespace } = this.#context
    const series = parseToken(namespace, token)?.key
    if (series !== undefined && endings.isLeft(series)) return false
    return !keys.some(key => endings.hasFollower(key))
  }

  /**
   * Begins an anonymous session for a browser that has none; `null` where a parallel request of this browser logged in or
   * out, before or meanwhile. `keys` are those that the request came with.
   */
  async begin<S extends AnySession>(
    keys: readonly SessionKey[],
    create: () => Promise<S>,
    destroy: (session: S) => Promise<void>,
  ): Promise<S | null> {
    const { endings } = this.#context
    if (this.#hasEnded || keys.some(key => endings.isLeft(key))) return null
    const session = await create()
    // Each key is told, so that a login which comes later ends this session.
    const mayStay = keys.map(key => endings.began(key, session.key))
    if (mayStay.every(Boolean)) return session
    await destroy(session)
    return null
  }
}
