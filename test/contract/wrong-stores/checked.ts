import { type Corrupt, corruption, type Forward, type SessionRecord, type StoreCall } from 'coatcheck/custom-store'
import { ReferenceStore } from 'coatcheck/custom-store/testing'

/** Rows that others have edited: this store checks what it reads, as one whose rows can be edited has to. */
export class CheckedStore extends ReferenceStore {
  override async read(key: string, call: StoreCall): Promise<SessionRecord | Forward | Corrupt | null> {
    const record = this.records.get(key)
    const corrupt = record === undefined ? null : corruption(record)
    if (corrupt === null) return super.read(key, call)
    this.records.delete(key)
    return { corrupt }
  }
  override live(key: string, now: number) {
    const live = super.live(key, now)
    return live !== undefined && corruption(live) === null ? live : undefined
  }
  override liveOf(userId: string, kind: SessionRecord['kind'], now: number) {
    return super.liveOf(userId, kind, now).filter(record => corruption(record) === null)
  }
}

/** Damages a record of a store that is a `ReferenceStore` underneath. */
export async function corrupt(store: object, key: string): Promise<void> {
  const { records } = store as ReferenceStore
  records.set(key, { ...records.get(key)!, version: -1 })
}
