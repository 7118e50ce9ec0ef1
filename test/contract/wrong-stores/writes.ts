// Mistakes about writes: versions, repetitions, atomicity, limits, and who holds which object.
import type { CreateOptions, RecordChange, ReplaceResult, SessionRecord, StoreCall } from 'coatcheck/custom-store'
import { ReferenceStore } from 'coatcheck/custom-store/testing'
import { pause, type WrongStore } from './wrong.ts'

class NoVersionCheck extends ReferenceStore {
  override update(key: string, version: number, change: RecordChange, { now }: StoreCall) {
    return super.update(key, this.records.get(key)?.version ?? version, change, { now })
  }
}

class ReplaceWithoutVersion extends ReferenceStore {
  override replace(oldKey: string, oldVersion: number, record: SessionRecord, options: CreateOptions, call: StoreCall) {
    return super.replace(oldKey, this.records.get(oldKey)?.version ?? oldVersion, record, options, call)
  }
}

class ReplaceInTwoSteps extends ReferenceStore {
  override async replace(
    oldKey: string,
    oldVersion: number,
    record: SessionRecord,
    options: CreateOptions,
    { now }: StoreCall,
  ): Promise<ReplaceResult> {
    if (this.records.get(record.key)?.writeId === record.writeId) return { outcome: 'created', ended: [] }
    const old = this.live(oldKey, now)
    if (old === undefined) return { outcome: 'gone', ended: [] }
    if (old.version !== oldVersion) return { outcome: 'conflict', ended: [] }
    await pause()
    return this.admit(record, options, old, now)
  }
}

class ReplaceKeepsTheOld extends ReferenceStore {
  override admit(record: SessionRecord, options: CreateOptions, old: SessionRecord | undefined, now: number) {
    const result = super.admit(record, options, old, now)
    if (result.outcome === 'created' && old !== undefined) this.records.set(old.key, old)
    return result
  }
}

class EndsTheOldFirst extends ReferenceStore {
  override admit(record: SessionRecord, options: CreateOptions, old: SessionRecord | undefined, now: number) {
    if (old !== undefined) this.records.delete(old.key)
    return super.admit(record, options, old, now)
  }
}

class ForgetsWriteIds extends ReferenceStore {
  override async create(record: SessionRecord, options: CreateOptions, { now }: StoreCall) {
    return this.admit(record, options, undefined, now)
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
    options: CreateOptions,
    call: StoreCall,
  ) {
    return this.records.has(record.key)
      ? ({ outcome: this.live(oldKey, call.now) === undefined ? 'gone' : 'collision', ended: [] } as const)
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
  override create(record: SessionRecord, options: CreateOptions, call: StoreCall) {
    this.records.delete(record.key)
    this.forwards.delete(record.key)
    return super.create(record, options, call)
  }
}

class CreatesOrphans extends ReferenceStore {
  override admit(record: SessionRecord, options: CreateOptions, old: SessionRecord | undefined, now: number) {
    const result = super.admit({ ...record, parent: null }, options, old, now)
    if (result.outcome === 'created') this.records.set(record.key, record)
    return result
  }
}

class LooksForTheParentFirst extends ReferenceStore {
  override async create(record: SessionRecord, options: CreateOptions, call: StoreCall) {
    const { parent } = record
    if (parent !== null && this.live(parent, call.now) === undefined) return super.create(record, options, call)
    for (let turn = 0; turn < 3; turn++) await pause()
    const result = await super.create({ ...record, parent: null }, options, call)
    if (result.outcome === 'created') this.records.set(record.key, record)
    return result
  }
}

class CountsBeforeTheLock extends ReferenceStore {
  override async create(record: SessionRecord, options: CreateOptions, call: StoreCall) {
    const { limit } = options
    const { now } = call
    const others = this.liveOf(record.userId ?? '', 'session', now).sort((a, b) => a.createdAt - b.createdAt)
    await pause()
    const excess = limit === undefined ? 0 : others.length + 1 - limit.max
    if (excess > 0 && limit?.onLimit === 'refuse') return { outcome: 'limit', ended: [] } as const
    const ended = others.slice(0, Math.max(0, excess)).map(({ key }) => key)
    for (const key of ended) this.records.delete(key)
    return { ...(await super.create(record, {}, call)), ended }
  }
}

class EndsTheYoungest extends ReferenceStore {
  override liveOf(userId: string, kind: SessionRecord['kind'], now: number) {
    return super.liveOf(userId, kind, now).map(record => ({ ...record, createdAt: -record.createdAt }))
  }
}

class CountsSeries extends ReferenceStore {
  override liveOf(userId: string, _kind: SessionRecord['kind'], now: number) {
    return [...super.liveOf(userId, 'session', now), ...super.liveOf(userId, 'remember', now)]
  }
}

class LimitsSeries extends ReferenceStore {
  override admit(record: SessionRecord, options: CreateOptions, old: SessionRecord | undefined, now: number) {
    const result = super.admit({ ...record, kind: 'session' }, options, old, now)
    if (result.outcome === 'created') this.records.set(record.key, { ...record })
    return result
  }
}

class EndsBelowTheLimit extends ReferenceStore {
  override admit(record: SessionRecord, options: CreateOptions, old: SessionRecord | undefined, now: number) {
    const { limit } = options
    if (limit?.onLimit !== 'end-oldest') return super.admit(record, options, old, now)
    const oldest = this.liveOf(record.userId ?? '', record.kind, now).sort((a, b) => a.createdAt - b.createdAt)
    const ended = oldest.slice(0, oldest.length + 1 - limit.max).map(({ key }) => key)
    for (const key of ended) this.records.delete(key)
    return { ...super.admit(record, {}, old, now), ended }
  }
}

class CountsTheReplaced extends ReferenceStore {
  override admit(record: SessionRecord, options: CreateOptions, old: SessionRecord | undefined, now: number) {
    const { limit } = options
    const same = old !== undefined && old.userId === record.userId
    return super.admit(
      record,
      same && limit ? { ...options, limit: { ...limit, max: limit.max - 1 } } : options,
      old,
      now,
    )
  }
}

class HandsOutItsObjects extends ReferenceStore {
  override async read(key: string, { now }: StoreCall) {
    return this.live(key, now) ?? super.read(key, { now })
  }
}

class KeepsTheCallersObjects extends ReferenceStore {
  override admit(record: SessionRecord, options: CreateOptions, old: SessionRecord | undefined, now: number) {
    const result = super.admit(record, options, old, now)
    if (result.outcome === 'created') this.records.set(record.key, record)
    return result
  }
}

class TrimsText extends ReferenceStore {
  override admit(record: SessionRecord, options: CreateOptions, old: SessionRecord | undefined, now: number) {
    return super.admit({ ...record, data: record.data.trimEnd() }, options, old, now)
  }
}

const TWINS = [
  'tells a session of another user or another instant from a repetition, though key and write ID are the same',
  'tells a login of another user or another instant from the same replace repeated, though key and write ID are the same',
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
      'answers conflict to a replace of another version and changes nothing',
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
    caughtBy: [
      'answers stale-login to a replace below the minimum password version, and the old session stays',
      'refuses a login beyond the limit in a replace, and the old session stays',
    ],
  },
  {
    mistake: 'ignores write IDs',
    open: () => new ForgetsWriteIds(),
    caughtBy: [
      'answers created again when the same create is repeated, and keeps one session',
      'answers updated again when the same update is repeated, and counts it once',
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
    caughtBy: ['answers orphan where the parent was never stored, and writes nothing'],
  },
  {
    mistake: 'looks for the parent before it writes',
    open: () => new LooksForTheParentFirst(),
    caughtBy: ['lets no session begin unseen with a series that is being ended'],
  },
  {
    mistake: 'counts for the limit before it takes the lock',
    open: () => new CountsBeforeTheLock(),
    caughtBy: [
      'lets exactly as many sessions in as the limit allows when 50 ask at once',
      'keeps exactly as many sessions as the limit allows when 50 end the oldest at once',
    ],
  },
  {
    mistake: 'ends the youngest for the limit',
    open: () => new EndsTheYoungest(),
    caughtBy: ['ends the sessions with the smallest createdAt beyond the limit and names them'],
  },
  {
    mistake: 'counts remember-me series for the limit',
    open: () => new CountsSeries(),
    caughtBy: ["counts only live sessions of the same user for the limit: no series, no expired ones, no one else's"],
  },
  {
    mistake: 'ends sessions for the limit of a series',
    open: () => new LimitsSeries(),
    caughtBy: ['obeys no limit for an anonymous session and for a series'],
  },
  {
    mistake: 'ends sessions for a limit that leaves room',
    open: () => new EndsBelowTheLimit(),
    caughtBy: ['ends no session for a limit that leaves room'],
  },
  {
    mistake: 'counts the replaced session for the limit',
    open: () => new CountsTheReplaced(),
    caughtBy: ['does not count the replaced session of the same user for the limit'],
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
