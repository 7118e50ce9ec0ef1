import { corruption } from '../../src/contract/record.ts'
import type { ReplaceResult, SessionRecord } from '../../src/contract/store.ts'
import { userFault } from './user.ts'

/** What the tables say about a `create` or `replace` that did not take place. */
export interface Facts {
  /**
   * The write ID of the record under the new key, if it is of the same user and instant; `null` where there is none, or
   * a forward.
   */
  readonly writeId: string | null
  /** Whether anything is stored under the new key. */
  readonly taken: boolean
  /** The live record under the old key. */
  readonly old: { readonly version: number; readonly parent: string | null } | null
  /** Whether the user's floor is above the record's password version. */
  readonly stale: boolean
  /** Whether the record's parent is live. */
  readonly parentLives: boolean
}

/** The answer in the order that the contract gives, or `null` if nothing stands in the way. `oldVersion`: of a replace. */
export function verdict(record: SessionRecord, facts: Facts, oldVersion?: number): ReplaceResult['outcome'] | null {
  if (facts.writeId === record.writeId) return 'created'
  if (oldVersion !== undefined && facts.old === null) return 'gone'
  if (oldVersion !== undefined && facts.old?.version !== oldVersion) return 'conflict'
  if (facts.taken) return 'collision'
  if (facts.stale) return 'stale-login'
  // A replaced session has its parent already: only a new one needs a parent that is live.
  const needsParent = record.parent !== null && facts.old?.parent !== record.parent
  return needsParent && !facts.parentLives ? 'orphan' : null
}

export const answer = <O extends ReplaceResult['outcome']>(outcome: O) => ({ outcome, ended: [] as readonly string[] })

const isText = (text: string | null) => text === null || (text.isWellFormed() && !text.includes('\0'))

/** Says why the tables cannot keep a record exactly as it is; `null` where they can. */
export function recordFault(record: SessionRecord, userIds: 'bigint' | 'string'): string | null {
  const fault = corruption(record) ?? (record.userId === null ? null : userFault(record.userId, userIds))
  if (fault !== null) return fault
  if (!isText(record.userName) || (record.userName?.length ?? 0) > 256)
    return 'the name is longer than 256 characters, or not well-formed Unicode without NUL'
  return changeFault(record)
}

/** The same for what an update writes. */
export function changeFault({ data, writeId }: { data: string; writeId: string }): string | null {
  // A database would refuse NUL and replace a lone surrogate: what comes back has to be what was given.
  if (!isText(data)) return 'the data is not well-formed Unicode without NUL'
  return /^[A-Za-z0-9_-]{1,64}$/.test(writeId) ? null : 'the write ID is malformed'
}
