import type { UserIds } from '../session/user-id.ts'
import { quote } from '../text/quote.ts'
import type { AnyContext, Context } from './context.ts'

// Registered, because a process may hold several copies of this package (its ESM and its CommonJS build, or one in each
// bundle of a framework) and keep one manager for all. The number rises when visits objects need something else of a context.
const CONTEXT = Symbol.for('coatcheck.context.1')

// Not a private field: the types of two copies would then not fit each other, and a tenant could not be made from its
// parent's context without a constructor that takes one.
const contexts = new WeakMap<object, AnyContext>()

/** Lets the managers of this class be asked for their context, also by another copy of the package. */
export function offerContexts(prototype: object): void {
  // Not a declared member: types show no way to it.
  Object.defineProperty(prototype, CONTEXT, {
    get(this: object) {
      return contexts.get(this)
    },
  })
}

export function keepContext(sessions: object, context: AnyContext): void {
  contexts.set(sessions, context)
}

/**
 * For the verbs and the visits objects, not for users: what is behind a manager, whichever copy of the package it is from.
 * @throws TypeError for anything else
 */
export function contextOf<D extends object, I extends UserIds, In extends object>(sessions: object): Context<D, I, In> {
  const context: Context<D, I, In> | undefined =
    contexts.get(sessions) ?? (sessions as { [CONTEXT]?: AnyContext } | null | undefined)?.[CONTEXT]
  if (context === undefined)
    throw new TypeError(
      `expected a SessionManager, got ${quote(sessions)} (two versions of coatcheck in one process do not know each other: npm ls coatcheck)`,
    )
  return context
}
