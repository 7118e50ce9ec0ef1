// Stores that make a mistake on purpose, which a search has to find.
import type { RecordChange, ReplaceOptions, SessionRecord, StoreCall } from 'coatcheck/custom-store'
import { ReferenceStore } from 'coatcheck/custom-store/testing'

/** Revives what has ended, as stores do that write without a condition. */
class Reviving extends ReferenceStore {
  readonly #ended = new Map<string, SessionRecord>()
  override async create(record: SessionRecord, call: StoreCall) {
    this.#ended.set(record.key, record)
    return super.create(record, call)
  }
  override async update(key: string, version: number, change: RecordChange, call: StoreCall) {
    const outcome = await super.update(key, version, change, call)
    const ended = this.#ended.get(key)
    if (outcome !== 'gone' || ended === undefined || this.forwards.has(key)) return outcome
    this.records.set(key, { ...ended, data: change.data, version: version + 1 })
    return 'updated'
  }
}
class WithoutForward extends ReferenceStore {
  override async replace(
    old: string,
    version: number,
    record: SessionRecord,
    { forward: _, ...options }: ReplaceOptions,
    call: StoreCall,
  ) {
    return super.replace(old, version, record, options, call)
  }
}
class WithoutVersion extends ReferenceStore {
  override async replace(
    old: string,
    version: number,
    record: SessionRecord,
    options: ReplaceOptions,
    call: StoreCall,
  ) {
    return super.replace(old, this.live(old, call.now)?.version ?? version, record, options, call)
  }
}
class WithoutFloor extends ReferenceStore {
  override isStale(): boolean {
    return false
  }
}
class WithoutSuccessor extends ReferenceStore {
  override successor(key: string | undefined): string | undefined {
    return key
  }
}
class WithoutParent extends ReferenceStore {
  override admit(record: SessionRecord, options: ReplaceOptions, old: SessionRecord | undefined, now: number) {
    const outcome = super.admit({ ...record, parent: null }, options, old, now)
    if (outcome === 'created') this.records.set(record.key, { ...record })
    return outcome
  }
}

/** By what each does. */
export const WRONG = {
  'writes without a condition': Reviving,
  'leaves no forward to a new ID': WithoutForward,
  'replaces whatever version is there': WithoutVersion,
  'keeps no minimum password version': WithoutFloor,
  'loses the spared session where that gets a new ID': WithoutSuccessor,
  'begins sessions of a series that has ended': WithoutParent,
} satisfies Record<string, new () => ReferenceStore>
