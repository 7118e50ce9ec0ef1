// Mistakes about what is alive: the dead come back, the living die, the clock is the wrong one.
import type { DeleteUserOptions, RecordChange, ReplaceOptions, SessionRecord, StoreCall } from 'coatcheck/custom-store'
import { ReferenceStore } from 'coatcheck/custom-store/testing'
import { pause, type WrongStore } from './wrong.ts'

class UpsertingUpdate extends ReferenceStore {
  override async update(key: string, version: number, change: RecordChange, { now }: StoreCall) {
    const answer = await super.update(key, version, change, { now })
    if (answer !== 'gone' || this.forwards.has(key)) return answer
    const expiry = { createdAt: now, absoluteExpiresAt: change.expiresAt, ...change }
    const record = { key, kind: 'session', parent: null, userId: null, userName: null, passwordVersion: null } as const
    this.records.set(key, { ...record, ...expiry, version: version + 1 })
    return 'updated' as const
  }
}

class LateUpdate extends ReferenceStore {
  override async update(key: string, version: number, change: RecordChange, { now }: StoreCall) {
    const live = this.live(key, now)
    if (live === undefined) return 'gone'
    if (live.version !== version) return 'conflict'
    await pause()
    const { data, writeId } = change
    this.records.set(key, {
      ...this.raised(live, change.seenAt, change.expiresAt),
      data,
      writeId,
      version: version + 1,
    })
    return 'updated'
  }
}

class RevivingTouch extends ReferenceStore {
  override async touch(key: string, seenAt: number, expiresAt: number) {
    const record = this.records.get(key)
    if (record === undefined) return 'gone'
    this.records.set(key, this.raised(record, seenAt, expiresAt))
    return 'touched'
  }
}

class NeverExpiring extends ReferenceStore {
  override live(key: string) {
    return this.records.get(key)
  }
}

class OwnClock extends ReferenceStore {
  override live(key: string) {
    return super.live(key, Date.now())
  }
  override liveOf(userId: string, kind: SessionRecord['kind']) {
    return super.liveOf(userId, kind, Date.now())
  }
}

class ExpiredOnReadAreRemoved extends ReferenceStore {
  override async read(key: string, { now }: StoreCall) {
    const found = await super.read(key, { now })
    if (found === null) this.records.delete(key)
    return found
  }
}

class SlidingRead extends ReferenceStore {
  override async read(key: string, { now }: StoreCall) {
    const live = this.live(key, now)
    if (live !== undefined) this.records.set(key, this.raised(live, now, now + 1_800_000))
    return super.read(key, { now })
  }
}

class BoundlessTouch extends ReferenceStore {
  override raised(record: SessionRecord, seenAt: number, expiresAt: number) {
    return { ...super.raised(record, seenAt, expiresAt), expiresAt: Math.max(record.expiresAt, expiresAt) }
  }
}

class ShorteningTouch extends ReferenceStore {
  override raised(record: SessionRecord, seenAt: number, expiresAt: number) {
    return { ...record, seenAt, expiresAt: Math.min(expiresAt, record.absoluteExpiresAt) }
  }
}

class EagerSweep extends ReferenceStore {
  override sweep(limit: number, { now }: StoreCall) {
    return super.sweep(limit, { now: now + 300_000 })
  }
}

class SweepsAMinuteEarly extends ReferenceStore {
  override sweep(limit: number, { now }: StoreCall) {
    return super.sweep(limit, { now: now + 60_000 })
  }
}

class SweepsForwardsEarly extends ReferenceStore {
  override async sweep(limit: number, call: StoreCall) {
    for (const [key, { forward }] of this.forwards) if (forward.until < call.now) this.forwards.delete(key)
    return super.sweep(limit, call)
  }
}

class SweepsAMinuteLate extends ReferenceStore {
  override sweep(limit: number, { now }: StoreCall) {
    return super.sweep(limit, { now: now - 60_000 })
  }
}

class BoundlessSweep extends ReferenceStore {
  override sweep(_limit: number, { now }: StoreCall) {
    return super.sweep(Number.POSITIVE_INFINITY, { now })
  }
}

class NoForward extends ReferenceStore {
  override admit(record: SessionRecord, _options: ReplaceOptions, old: SessionRecord | undefined, now: number) {
    return super.admit(record, {}, old, now)
  }
}

class ShortForward extends ReferenceStore {
  override async delete(key: string) {
    const left = this.forwards.get(key)
    return this.records.delete(left?.forward.movedTo ?? key)
  }
}

class FollowsEightForwards extends ReferenceStore {
  override async delete(key: string, call: StoreCall, hops = 0): Promise<boolean> {
    const left = this.forwards.get(key)
    if (left === undefined) return this.records.delete(key)
    this.forwards.delete(key)
    return hops < 8 && this.delete(left.forward.movedTo, call, hops + 1)
  }
}

class SparesBehindEightForwards extends ReferenceStore {
  override successor(key: string | undefined, hops = 0): string | undefined {
    const left = this.forwards.get(key ?? '')
    return left === undefined || hops === 8 ? key : this.successor(left.forward.movedTo, hops + 1)
  }
}

/** Waits for its turn, and looks at no deadline. */
class WritesAfterItsDeadline extends ReferenceStore {
  override async create(record: SessionRecord, call: StoreCall) {
    await pause()
    return super.create(record, call)
  }
}

class DeleteUserLeavesSeries extends ReferenceStore {
  override async deleteUser(userId: string, options: DeleteUserOptions, call: StoreCall) {
    const series = await this.listUser(userId, 'remember', call)
    const ended = await super.deleteUser(userId, options, call)
    for (const record of series) this.records.set(record.key, record)
    return ended
  }
}

class IndexWithoutRemoval extends ReferenceStore {
  readonly index = new Map<string, SessionRecord>()
  override admit(record: SessionRecord, options: ReplaceOptions, old: SessionRecord | undefined, now: number) {
    const result = super.admit(record, options, old, now)
    if (result === 'created') this.index.set(record.key, record)
    return result
  }
  override async listUser(userId: string, kind: SessionRecord['kind'], { now }: StoreCall) {
    return [...this.index.values()].filter(r => r.userId === userId && r.kind === kind && r.expiresAt > now)
  }
}

const SWEEP = 'sweeps only what expired more than five minutes ago, and at most as much as it is told'
const CHAIN = 'ends the last successor when the first session is ended through a chain of forwards, of 64 too'
const LATE_UPDATE = 'does not let a late update or touch revive a session that is being ended'

export const life: readonly WrongStore[] = [
  {
    mistake: 'updates by an upsert',
    open: () => new UpsertingUpdate(),
    caughtBy: ['answers gone to an update of a session that was ended, and does not revive it', LATE_UPDATE],
  },
  {
    mistake: 'updates in two steps, a read and a write',
    open: () => new LateUpdate(),
    caughtBy: [
      LATE_UPDATE,
      'does not let a late update or touch revive a session while its user is logged out everywhere',
      'counts to 100 in 100 parallel increments',
    ],
  },
  {
    mistake: 'touches what has expired',
    open: () => new RevivingTouch(),
    caughtBy: ['answers gone to a touch of a session that has expired or was ended, and does not revive it'],
  },
  {
    mistake: 'ignores the expiry',
    open: () => new NeverExpiring(),
    caughtBy: ['shows a session until its expiry, to the millisecond'],
  },
  {
    mistake: 'asks its own clock',
    open: () => new OwnClock(),
    caughtBy: [
      'shows a session until its expiry, to the millisecond',
      'keeps the session of a node whose clock is an hour behind alive for that node',
    ],
  },
  {
    mistake: 'removes what looks expired to the reader',
    open: () => new ExpiredOnReadAreRemoved(),
    caughtBy: ['does not end the sessions of other nodes when the clock of one is an hour ahead'],
  },
  {
    mistake: 'prolongs a session by reading it',
    open: () => new SlidingRead(),
    caughtBy: ['does not prolong a session by reading or listing it'],
  },
  {
    mistake: 'extends beyond the absolute expiry',
    open: () => new BoundlessTouch(),
    caughtBy: [
      'never extends a session beyond its absolute expiry by an update',
      'never extends a session beyond its absolute expiry by a touch',
    ],
  },
  {
    mistake: 'lets the last clock win in a touch',
    open: () => new ShorteningTouch(),
    caughtBy: [
      'never lowers seenAt or expiresAt by a touch, each by itself',
      'does not shorten or extend a session when a node whose clock is an hour behind writes to it',
    ],
  },
  {
    mistake: 'sweeps what has just expired',
    open: () => new EagerSweep(),
    caughtBy: [SWEEP],
  },
  {
    mistake: 'sweeps a minute early',
    open: () => new SweepsAMinuteEarly(),
    caughtBy: [SWEEP],
  },
  { mistake: 'sweeps a minute late', open: () => new SweepsAMinuteLate(), caughtBy: [SWEEP] },
  { mistake: 'sweeps forwards whose grace is over', open: () => new SweepsForwardsEarly(), caughtBy: [SWEEP] },
  {
    mistake: 'sweeps all at once',
    open: () => new BoundlessSweep(),
    caughtBy: [SWEEP],
  },
  {
    mistake: 'leaves no forward',
    open: () => new NoForward(),
    caughtBy: [
      'leaves a forward that read reports with its salt and its until',
      'ends the session and its successor when a logout and a rotation run at once',
    ],
  },
  {
    mistake: 'follows the first forward only',
    open: () => new ShortForward(),
    caughtBy: [CHAIN],
  },
  { mistake: 'follows eight forwards', open: () => new FollowsEightForwards(), caughtBy: [CHAIN] },
  {
    mistake: 'spares a session behind eight forwards, and none behind more',
    open: () => new SparesBehindEightForwards(),
    caughtBy: ['spares the successor of the excepted session, however often it was replaced, and no other session'],
  },
  {
    mistake: 'begins a write after its deadline',
    open: () => new WritesAfterItsDeadline(),
    caughtBy: ['begins no write after its deadline: a call that comes late rejects, and writes nothing'],
  },
  {
    mistake: 'forgets the remember-me series when a user is logged out everywhere',
    open: () => new DeleteUserLeavesSeries(),
    caughtBy: ['ends all sessions and series of a user and counts the live sessions'],
  },
  {
    mistake: 'keeps what was ended in the index of the user',
    open: () => new IndexWithoutRemoval(),
    caughtBy: [
      'ends a session once, and says so',
      "moves a session from one user to another: it leaves the first one's list",
    ],
  },
]
