import type { EngineName } from '../../../support/services/engines.ts'
import type { Rules } from '../model.ts'
import type { Faults } from '../nemesis.ts'
import type { Opening } from '../open-store.ts'

/** An engine that runs, with what its processes need and what can go wrong with it. */
export interface Running {
  /** One per process. */
  readonly openings: readonly Opening[]
  readonly faults: Faults
  readonly rules: Rules
  /** See `CheckOptions`. */
  readonly grace?: number
  readonly lateEndings?: boolean
  stop(): Promise<void>
}

export interface Engine {
  readonly name: string
  /** What the tests call what it needs. */
  readonly needs: EngineName
  /** The clients of a round, as many per process, and how long it is: what the engine can serve while it fails. */
  readonly clients: number
  /** Whether a process may be killed alone, without the data. */
  readonly hasProcesses: boolean
  start(): Promise<Running>
}
