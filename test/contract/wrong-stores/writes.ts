// Mistakes about writes: versions, repetitions, atomicity, and who holds which object.
import type { RecordChange, ReplaceOptions, ReplaceOutcome, SessionRecord, StoreCall } from 'coatcheck/custom-store'
import { ReferenceStore } from 'coatcheck/custom-store/testing'
import { pause, type WrongStore } from './wrong.ts'

class NoVersionCheck extends ReferenceStore {
  override update(key: string, version: number, change: RecordChange, { now }: StoreCall) {
    return super.update(key, this.records.get(key)?.version ?? version, change, { now })
  }
}

class ReplaceWithoutVersion extends ReferenceStore {
  override replace(
    oldKey: string,
    oldVersion: number,
    record: SessionRecord,
    options: ReplaceOptions,
    call: StoreCall,
  ) {
    return super.replace(oldKey, this.records.get(oldKey)?.version ?? oldVersion, record, options, call)
  }
}

class ReplaceInTwoSteps extends ReferenceStore {
  override async replace(
    oldKey: string,
    oldVersion: number,
    record: SessionRecord,
    options: ReplaceOptions,
    { now }: StoreCall,
  ): Promise<ReplaceOutcome> {
    if (this.records.get(record.key)?.writeId === record.writeId) return 'created'
    const old = this.live(oldKey, now)
    if (old === undefined) return 'gone'
    if (old.version !== oldVersion) return 'conflict'
    await pause()
    return this.admit(record, options, old, now)
  }
}

class ReplaceKeepsTheOld extends ReferenceStore {
  override admit(record: SessionRecord, options: ReplaceOptions, old: SessionRecord | undefined, now: number) {
    const result = super.admit(record, options, old, now)
    if (result === 'created' && old !== undefined) this.records.set(old.key, old)
    return result
  }
}

class EndsTheOldFirst extends ReferenceStore {
  override admit(record: SessionRecord, options: ReplaceOptions, old: SessionRecord | undefined, now: number) {
    if (old !== undefined) this.records.delete(old.key)
    return super.admit(record, options, old, now)
  }
}

class ForgetsWriteIds extends ReferenceStore {
  override async create(record: SessionRecord, { now }: StoreCall) {
    return this.admit(record, {}, undefined, now)
  }
  override async update(key: string, version: number, change: RecordChange, { now }: StoreCall) {
    const live = this.live(key, now)
    if (live !== undefined && live.version !== version) return 'conflict'
    return super.update(key, version, change, { now })
  }
  override async replace(
    oldKey: string,
    oldVersion: number,
    record: SessionRecord,
    options: ReplaceOptions,
    call: StoreCall,
  ): Promise<ReplaceOutcome> {
    return this.records.has(record.key)
      ? this.live(oldKey, call.now) === undefined
        ? 'gone'
        : 'collision'
      : super.replace(oldKey, oldVersion, record, options, call)
  }
}

class BelievesWriteIds extends ReferenceStore {
  override isRepetition({ key, writeId }: SessionRecord) {
    return this.records.get(key)?.writeId === writeId
  }
}

class BelievesWriteIdsOfOneUser extends ReferenceStore {
  override isRepetition({ key, writeId, userId }: SessionRecord) {
    const stored = this.records.get(key)
    return stored?.writeId === writeId && stored.userId === userId
  }
}

class BelievesWriteIdsOfAnyVersion extends ReferenceStore {
  override async update(key: string, version: number, change: RecordChange, call: StoreCall) {
    if (this.live(key, call.now)?.writeId === change.writeId) return 'updated'
    return super.update(key, version, change, call)
  }
}

class OverwritingCreate extends ReferenceStore {
  override create(record: SessionRecord, call: StoreCall) {
    this.records.delete(record.key)
    this.forwards.delete(record.key)
    return super.create(record, call)
  }
}

class CreatesOrphans extends ReferenceStore {
  override admit(record: SessionRecord, options: ReplaceOptions, old: SessionRecord | undefined, now: number) {
    const result = super.admit({ ...record, parent: null }, options, old, now)
    if (result === 'created') this.records.set(record.key, record)
    return result
  }
}

class LooksForTheParentFirst extends ReferenceStore {
  override async create(record: SessionRecord, call: StoreCall) {
    const { parent } = record
    if (parent !== null && this.live(parent, call.now) === undefined) return super.create(record, call)
    for (let turn = 0; turn < 3; turn++) await pause()
    const result = await super.create({ ...record, parent: null }, call)
    if (result === 'created') this.records.set(record.key, record)
    return result
  }
}

class HandsOutItsObjects extends ReferenceStore {
  override async read(key: string, { now }: StoreCall) {
    return this.live(key, now) ?? super.read(key, { now })
  }
}

class KeepsTheCallersObjects extends ReferenceStore {
  override admit(record: SessionRecord, options: ReplaceOptions, old: SessionRecord | undefined, now: number) {
    const result = super.admit(record, options, old, now)
    if (result === 'created') this.records.set(record.key, record)
    return result
  }
}

class TrimsText extends ReferenceStore {
  override admit(record: SessionRecord, options: ReplaceOptions, old: SessionRecord | undefined, now: number) {
    return super.admit({ ...record, data: record.data.trimEnd() }, options, old, now)
  }
}

const TWINS = [
  'tells a session of another user or another instant from a repetition with its key and write ID',
  'tells a login of another user or another instant from a repeated replace with its key and write ID',
]

export const writes: readonly WrongStore[] = [
  {
    mistake: 'does not compare versions in an update',
    open: () => new NoVersionCheck(),
    caughtBy: [
      'answers conflict to an update of another version and changes nothing',
      'counts to 100 in 100 parallel increments',
      'lets one of two updates of one version win',
    ],
  },
  {
    mistake: 'replaces without a version',
    open: () => new ReplaceWithoutVersion(),
    caughtBy: [
      'answers conflict to a replace of another version, also to a login from it, and changes nothing',
      'does not lose an acknowledged update while an anonymous session becomes a login',
    ],
  },
  {
    mistake: 'replaces in two steps',
    open: () => new ReplaceInTwoSteps(),
    caughtBy: [
      'ends the session and its successor when a logout and a rotation run at once',
      'gives a session one successor when it is replaced 20 times at once',
      'lets no successor of a session survive a logout everywhere without a password version',
    ],
  },
  {
    mistake: 'leaves the replaced session alive',
    open: () => new ReplaceKeepsTheOld(),
    caughtBy: ['ends the old session and makes the new one live in a replace'],
  },
  {
    mistake: 'ends the old session before the new one is admitted',
    open: () => new EndsTheOldFirst(),
    caughtBy: ['answers stale-login to a replace below the minimum password version, and the old session stays'],
  },
  {
    mistake: 'ignores write IDs',
    open: () => new ForgetsWriteIds(),
    caughtBy: [
      'answers created again when the same create is repeated, and keeps one session',
      'answers updated again when the same update is repeated, also after a touch, and counts it once',
      'answers created again when the same replace is repeated',
      'counts a write once that arrives five times at once with one write ID',
    ],
  },
  {
    mistake: "takes another user's session for a repetition by its write ID",
    open: () => new BelievesWriteIds(),
    caughtBy: TWINS,
  },
  {
    mistake: 'takes a session of another instant for a repetition by its write ID and user',
    open: () => new BelievesWriteIdsOfOneUser(),
    caughtBy: TWINS,
  },
  {
    mistake: 'takes an update of another version for a repetition by its write ID',
    open: () => new BelievesWriteIdsOfAnyVersion(),
    caughtBy: ['answers conflict to an update of another version that has the write ID of the last one'],
  },
  {
    mistake: 'overwrites on create',
    open: () => new OverwritingCreate(),
    caughtBy: [
      'answers collision where the key is taken, and leaves the session there alone',
      'answers collision where a forward stands under the key, and leaves the forward alone',
    ],
  },
  {
    mistake: 'does not look for the parent',
    open: () => new CreatesOrphans(),
    caughtBy: [
      'answers orphan where the parent was never stored, has expired, has ended or moved on, and writes nothing',
    ],
  },
  {
    mistake: 'looks for the parent before it writes',
    open: () => new LooksForTheParentFirst(),
    caughtBy: ['lets no session begin unseen with a series that is being ended'],
  },
  {
    mistake: 'hands out its own objects',
    open: () => new HandsOutItsObjects(),
    caughtBy: ['is not changed by a caller who changes the objects that it got'],
  },
  {
    mistake: "keeps the caller's objects",
    open: () => new KeepsTheCallersObjects(),
    caughtBy: ['is not changed by a caller who changes the objects that it passed'],
  },
  {
    mistake: 'trims text',
    open: () => new TrimsText(),
    caughtBy: ['keeps data of any well-formed text without NUL unchanged'],
  },
]
