import {
  type Corrupt,
  type CreateOutcome,
  type DeleteUserOptions,
  FORWARD_LIFETIME,
  type Forward,
  type RecordChange,
  type ReplaceOptions,
  type ReplaceOutcome,
  type ScanPage,
  type SessionRecord,
  type Store,
  type StoreCall,
  SWEEP_MARGIN,
} from '../contract/store.ts'

/** A forward and until when it is kept. */
export interface KeptForward {
  readonly forward: Forward
  readonly keptUntil: number
}

/** The password version below which a user's logins are stale, and until when. */
export interface KeptMinPasswordVersion {
  readonly passwordVersion: number
  readonly until: number
}

/**
 * The contract in its plainest words: three maps and no index. The model-based tests compare a store with it; it is not
 * meant for use, every question about a user looks at every record.
 */
export class ReferenceStore implements Store {
  readonly records = new Map<string, SessionRecord>()
  readonly forwards = new Map<string, KeptForward>()
  readonly minPasswordVersions = new Map<string, KeptMinPasswordVersion>()

  async create(record: SessionRecord, { now }: StoreCall): Promise<CreateOutcome> {
    if (this.isRepetition(record)) return 'created'
    return this.admit(record, {}, undefined, now)
  }

  async read(key: string, { now }: StoreCall): Promise<SessionRecord | Forward | Corrupt | null> {
    const live = this.live(key, now)
    if (live !== undefined) return { ...live }
    const left = this.forwards.get(key)
    return left !== undefined && left.keptUntil > now ? { ...left.forward } : null
  }

  async update(
    key: string,
    version: number,
    change: RecordChange,
    { now }: StoreCall,
  ): Promise<'updated' | 'conflict' | 'gone'> {
    const live = this.live(key, now)
    if (live === undefined) return 'gone'
    if (live.version === version + 1 && live.writeId === change.writeId) return 'updated'
    if (live.version !== version) return 'conflict'
    const { data, writeId } = change
    this.records.set(key, {
      ...this.raised(live, change.seenAt, change.expiresAt),
      data,
      writeId,
      version: version + 1,
    })
    return 'updated'
  }

  async touch(key: string, seenAt: number, expiresAt: number, { now }: StoreCall): Promise<'touched' | 'gone'> {
    const live = this.live(key, now)
    if (live === undefined) return 'gone'
    this.records.set(key, this.raised(live, seenAt, expiresAt))
    return 'touched'
  }

  async replace(
    oldKey: string,
    oldVersion: number,
    record: SessionRecord,
    options: ReplaceOptions,
    { now }: StoreCall,
  ): Promise<ReplaceOutcome> {
    if (this.isRepetition(record)) return 'created'
    const old = this.live(oldKey, now)
    if (old === undefined) return 'gone'
    if (old.version !== oldVersion) return 'conflict'
    return this.admit(record, options, old, now)
  }

  async delete(key: string, call: StoreCall): Promise<boolean> {
    const left = this.forwards.get(key)
    this.forwards.delete(key)
    return left === undefined ? this.records.delete(key) : this.delete(left.forward.movedTo, call)
  }

  async deleteUser(userId: string, options: DeleteUserOptions, { now }: StoreCall): Promise<number> {
    const { minPasswordVersion, minPasswordVersionUntil } = options
    const spared = this.successor(options.exceptKey)
    if (minPasswordVersion !== undefined) {
      const held = this.heldMinimum(userId, now)
      this.minPasswordVersions.set(userId, {
        passwordVersion: Math.max(held?.passwordVersion ?? 0, minPasswordVersion),
        until: Math.max(held?.until ?? 0, minPasswordVersionUntil),
      })
    }
    let ended = 0
    for (const record of [...this.records.values()]) {
      if (record.userId !== userId || record.key === spared) continue
      this.records.delete(record.key)
      if (record.kind === 'session' && record.expiresAt > now) ended++
    }
    return ended
  }

  async listUser(userId: string, kind: SessionRecord['kind'], { now }: StoreCall): Promise<SessionRecord[]> {
    return this.liveOf(userId, kind, now).map(record => ({ ...record }))
  }

  async sweep(limit: number, { now }: StoreCall): Promise<number> {
    let removed = 0
    const past = (instant: number) => removed < limit && instant < now - SWEEP_MARGIN && ++removed > 0
    for (const [key, record] of this.records) if (past(record.expiresAt)) this.records.delete(key)
    for (const [key, left] of this.forwards) if (past(left.keptUntil)) this.forwards.delete(key)
    for (const [userId, { until }] of this.minPasswordVersions) if (past(until)) this.minPasswordVersions.delete(userId)
    return removed
  }

  async scan(cursor: string | null, limit: number, { now }: StoreCall): Promise<ScanPage> {
    const keys = [...this.records.keys(), ...this.forwards.keys()]
    const left = keys.filter(key => cursor === null || key > cursor).sort()
    const page = left.slice(0, limit)
    return {
      records: page.flatMap(key => this.live(key, now) ?? []).map(record => ({ ...record })),
      forwards: page.filter(key => this.forwards.has(key)),
      next: left.length > limit ? page.at(-1)! : null,
    }
  }

  async count({ now }: StoreCall): Promise<number> {
    return [...this.records.keys()].filter(key => this.live(key, now)?.kind === 'session').length
  }

  /** Is this record, as its `create` or `replace` wrote it, stored already? */
  isRepetition({ key, writeId, userId, createdAt }: SessionRecord): boolean {
    const stored = this.records.get(key)
    return stored?.writeId === writeId && stored.userId === userId && stored.createdAt === createdAt
  }

  /** The key itself, or the one that the forwards from it lead to. */
  successor(key: string | undefined): string | undefined {
    const left = key === undefined ? undefined : this.forwards.get(key)
    return left === undefined ? key : this.successor(left.forward.movedTo)
  }

  /** The user's minimum password version if it still holds. */
  heldMinimum(userId: string, now: number): KeptMinPasswordVersion | undefined {
    const kept = this.minPasswordVersions.get(userId)
    return kept !== undefined && kept.until > now ? kept : undefined
  }

  /** Is the password version of this login below the user's minimum? */
  isStale({ userId, passwordVersion }: SessionRecord, now: number): boolean {
    const minimum = userId === null ? undefined : this.heldMinimum(userId, now)
    return minimum !== undefined && minimum.passwordVersion > (passwordVersion ?? 0)
  }

  /** The record under a key, if it is live at `now`. */
  live(key: string, now: number): SessionRecord | undefined {
    const record = this.records.get(key)
    return record !== undefined && record.expiresAt > now ? record : undefined
  }

  /** The live records of one user and kind. */
  liveOf(userId: string, kind: SessionRecord['kind'], now: number): SessionRecord[] {
    return [...this.records.values()].filter(
      record => record.userId === userId && record.kind === kind && record.expiresAt > now,
    )
  }

  /** The record with the later instants: neither time of a record ever falls. */
  raised(record: SessionRecord, seenAt: number, expiresAt: number): SessionRecord {
    return {
      ...record,
      seenAt: Math.max(record.seenAt, seenAt),
      expiresAt: Math.max(record.expiresAt, Math.min(expiresAt, record.absoluteExpiresAt)),
    }
  }

  /** Decides whether a new record may live, in the order that `CreateOutcome` names, and keeps it if so. */
  admit(
    record: SessionRecord,
    { forward }: ReplaceOptions,
    old: SessionRecord | undefined,
    now: number,
  ): CreateOutcome {
    if (this.records.has(record.key) || this.forwards.has(record.key)) return 'collision'
    if (this.isStale(record, now)) return 'stale-login'
    if (record.parent !== null && old?.parent !== record.parent && this.live(record.parent, now) === undefined)
      return 'orphan'
    if (old !== undefined) {
      this.records.delete(old.key)
      if (forward !== undefined)
        this.forwards.set(old.key, {
          forward: { movedTo: record.key, salt: forward.salt, until: forward.until },
          keptUntil: Math.max(now, forward.until) + FORWARD_LIFETIME,
        })
    }
    this.records.set(record.key, { ...record })
    return 'created'
  }
}
