import type { SessionManager, Store } from 'coatcheck'
import type { SqlStore } from './open-store.ts'
import type { Given } from './options.ts'
import type { Output } from './output.ts'
import type { Progress } from './progress.ts'

/** Its user IDs are text: so it reads those of every application, and prints them exactly. */
export type Sessions = SessionManager<Record<string, unknown>, 'string'>

/** What a command works with once its store is open. */
export interface Task {
  readonly given: Given
  /** USER and KEY, checked. */
  readonly user: string | null
  readonly key: string | null
  /** The store, for people. */
  readonly name: string
  readonly store: Store
  readonly sql: SqlStore | null
  /** Of the namespace, where one is named. */
  readonly sessions: Sessions
  /** How long one call waits, in ms. */
  readonly timeout: number
  readonly output: Output
  readonly progress: Progress
  readonly signal: AbortSignal
  /** Asks the person at the terminal. */
  ask(question: string): Promise<string>
}
