// The store contract. A store keeps opaque records under keys; it knows no cookie, no secret and no clock of its own.
// Every rule below is a case of the conformance suite in `coatcheck/custom-store/testing`.

/**
 * How far the clocks of two nodes may differ: 5 minutes, in ms. Within that no session is lost, and none is taken for
 * stolen.
 */
export const CLOCK_TOLERANCE = 300_000
/**
 * How long after its `until` a forward is kept, so that a late logout still finds the successor: 2 minutes by the clock
 * of any node, in ms.
 */
export const FORWARD_LIFETIME = 120_000 + CLOCK_TOLERANCE
/** How long a call may take if its caller names no deadline, and the manager's default `storeTimeout`: 2 s, in ms. */
export const DEFAULT_STORE_TIMEOUT = 2000
/** How many bytes the data of an application may have: 1 MiB, less than any database takes in one value. */
export const MAX_DATA_BYTES = 1_048_576
/** How long ago a record must have expired before a sweep or a TTL may remove it: 5 minutes, in ms (clocks differ). */
export const SWEEP_MARGIN = 300_000

/**
 * One session, or one remember-me series, as a store keeps it. Instants are epoch milliseconds (safe integers).
 *
 * A record is **live** at `now` while it is stored and `expiresAt > now`.
 */
export interface SessionRecord {
  /** Derived from the session ID by SHA-256: 46 characters of `A-Z a-z 0-9 _ -`; the first 3 are the shard. */
  readonly key: string
  /** Remember-me series live in the same store, count separately, and die in the same `deleteUser`. */
  readonly kind: 'session' | 'remember'
  /**
   * Key of the record that this one was created from: for a remembered session its series, for a series the session
   * whose user asked to be remembered; `null` for all others.
   */
  readonly parent: string | null
  /** Canonical text of the user ID (decimal for numbers), at most 200 characters; `null` for an anonymous session. */
  readonly userId: string | null
  /** At most 256 characters, may be empty; well-formed Unicode without NUL. `null` exactly when `userId` is. */
  readonly userName: string | null
  /** Which password the login verified: an unsigned 32-bit number. `null` counts as 0 when it is compared. */
  readonly passwordVersion: number | null
  /** Opaque to the store: well-formed Unicode without NUL, at most `MAX_DATA_BYTES` and 4096 bytes of UTF-8. */
  readonly data: string
  /** 1 at creation, also of a replacement; plus 1 at each update. A touch does not change it. */
  readonly version: number
  /** The ID of the last create, replace or update: 8 to 32 characters of `A-Z a-z 0-9 _ -`. A touch does not change it. */
  readonly writeId: string
  /** When the login was, or the start of an anonymous session, epoch ms. A replacement of the same session keeps it. */
  readonly createdAt: number
  /**
   * When a request last used the session, as far as it was written down (at most once per `touchInterval`), epoch ms.
   *
   * Below `createdAt` it means: not used yet. So the manager stores a session that a remember token started, until a
   * browser comes back with its cookie; only then did the response arrive. A store keeps any value and only raises it.
   */
  readonly seenAt: number
  /** When the session ends unless it is used again, epoch ms; at most `absoluteExpiresAt`. */
  readonly expiresAt: number
  /** When the session ends in any case, epoch ms; never changed. */
  readonly absoluteExpiresAt: number
}

/**
 * Left under the old key by a `replace` with `forward`; kept until `max(now of the replace, until) + FORWARD_LIFETIME`.
 * Not live: `update`, `touch` and `replace` answer `'gone'`, only `delete` follows it, only `read` reports it.
 */
export interface Forward {
  /** Key of the successor. */
  readonly movedTo: string
  /** The manager derives the new session ID from the old one and this: `''` or 16 characters of `A-Z a-z 0-9 _ -`. */
  readonly salt: string
  /**
   * The end of the grace of the new ID, epoch ms. Until then, and for `CLOCK_TOLERANCE` after it, the manager leads a reader
   * on to the successor. The store only keeps it.
   */
  readonly until: number
}

/** The answer of `read` for a damaged record: one that this store cannot have written. The store has already removed it. */
export interface Corrupt {
  /** The reason, in a few words, without the content. */
  readonly corrupt: string
}

/** The answer of `read`; `null` if there is nothing live under the key: absent and expired are the same. */
export type ReadAnswer = SessionRecord | Forward | Corrupt | null

/** The last argument of each method: about the call itself. */
export interface StoreCall {
  /**
   * The manager's clock, epoch ms. A store consults no other to decide what is live. `invalidateAll` walks by a clock at 0,
   * at which all that is stored is live.
   */
  readonly now: number
  /**
   * When the caller stops waiting, on the scale of `performance.now()`: a store that queues or retries begins no command
   * after it.
   */
  readonly deadline?: number | undefined
}

/** Options of `replace`. */
export interface ReplaceOptions {
  /** The `Forward` to leave under the old key. Without it nothing is left there. */
  readonly forward?: { readonly salt: string; readonly until: number }
}

/**
 * The answer of `create`, in the order in which it is decided:
 * - `'created'`, also if a record with this key, `writeId`, `userId` and `createdAt` is stored already: a repeated
 *   call. The `writeId` alone is no proof: two copies of one process (a restored snapshot) could draw the same;
 * - `'collision'`: the key is taken by another record or a forward;
 * - `'stale-login'`: the user's minimum password version (see `deleteUser`) is above the record's password version;
 * - `'orphan'`: `parent` names no live record.
 */
export type CreateOutcome = 'created' | 'collision' | 'stale-login' | 'orphan'

/**
 * The answer of `replace`: as for `create`, with two more, decided after the repetition and before the rest:
 * - `'gone'`: no live record under the old key;
 * - `'conflict'`: its version is not `oldVersion`.
 *
 * `'orphan'` is not answered if the old record has the same `parent`: only a new session needs a live parent.
 */
export type ReplaceOutcome = CreateOutcome | 'conflict' | 'gone'

/** The change that an `update` writes. */
export interface RecordChange {
  /** Takes the place of the record's data. */
  readonly data: string
  /** The request that updates, epoch ms; the record keeps the later of the two. */
  readonly seenAt: number
  /** Epoch ms; the record keeps the later of the two, at most `absoluteExpiresAt`. */
  readonly expiresAt: number
  /** The ID of this write; the same in a repeated call. */
  readonly writeId: string
}

/** A piece of all that is stored, as `scan` answers it. */
export interface ScanPage {
  /** Live records, of both kinds, of users and anonymous; each is an object of its own. Corrupt ones are left out. */
  readonly records: readonly SessionRecord[]
  /** Keys that hold a forward: `delete` follows it. */
  readonly forwards: readonly string[]
  /** Where the next page begins: text of the store's own choice. `null`: this was the last page. */
  readonly next: string | null
}

/** The session that `deleteUser` spares, and the minimum password version that it sets. */
export interface DeleteUserOptions {
  /**
   * The record under this key survives; if the key holds a forward, its successor does (and so on). This holds even if
   * the `replace` that leaves the forward commits while `deleteUser` runs: the spared session may get a new ID
   * meanwhile. Another user's key spares nothing.
   */
  readonly exceptKey?: string
  /**
   * The user's minimum password version from now on. It only rises while it holds, which is until the latest
   * `minPasswordVersionUntil` told meanwhile. Once it has expired, the next one counts as it is, even if it is lower.
   */
  readonly minPasswordVersion?: number
  /** Until when the minimum password version holds, epoch ms. Without `minPasswordVersion` it means nothing. */
  readonly minPasswordVersionUntil: number
}

/**
 * Where sessions are kept. An absent session is a value; a method rejects only if the backend fails, best with a
 * `SessionStoreError`, which says whether the call was applied. Its message holds nothing of the database, because
 * frameworks send messages to clients. Every write is atomic, conditional, and repeatable with the same `writeId`.
 */
export interface Store {
  /** Makes a session live. */
  create(record: SessionRecord, call: StoreCall): Promise<CreateOutcome>
  /**
   * The live record, the forward, the report of a corrupt record (now removed), or `null`. A store in this process may answer
   * at once, without a promise: it is the one call that almost every request makes.
   */
  read(key: string, call: StoreCall): ReadAnswer | Promise<ReadAnswer>
  /**
   * Writes `data`, `version + 1` and `writeId` if the live record's version is `version`. `seenAt` and `expiresAt` only
   * rise, `expiresAt` never above the record's `absoluteExpiresAt`. A repeated call (same `writeId`, version now
   * `version + 1`) answers `'updated'` again. Unlike `create`, this need not compare user and `createdAt`: the caller has
   * read the record under this key, and no other user's record ever gets that key. Two copies of one process may write
   * to the same version, so the manager puts the time in nanoseconds into each `writeId`.
   */
  update(key: string, version: number, change: RecordChange, call: StoreCall): Promise<'updated' | 'conflict' | 'gone'>
  /** Raises `seenAt` and `expiresAt` (never lowers them, never above `absoluteExpiresAt`) of a live record. */
  touch(key: string, seenAt: number, expiresAt: number, call: StoreCall): Promise<'touched' | 'gone'>
  /**
   * Ends the old session and makes the new one live, in one atomic step. Where the
   * two keys live on different shards (never with `forward`): the new one is written first; if the old one cannot be
   * ended, the new one is removed again and the call answers `'gone'` or `'conflict'`, or rejects.
   */
  replace(
    oldKey: string,
    oldVersion: number,
    record: SessionRecord,
    options: ReplaceOptions,
    call: StoreCall,
  ): Promise<ReplaceOutcome>
  /**
   * Ends the session under this key; if the key holds a forward, its successor (and so on). True if one was stored. A
   * store that takes several steps removes forwards last: if the call fails and is repeated, it still finds its way.
   */
  delete(key: string, call: StoreCall): Promise<boolean>
  /**
   * Ends all records of the user, of both kinds, and whatever is derived from them while it runs. With
   * `minPasswordVersion`, from then on `create` and `replace` answer `'stale-login'` to a lower (or missing) password
   * version while it holds (`minPasswordVersionUntil > now`). Answers how many live records of kind `'session'` it ended.
   *
   * The records may be ended in pieces. Calls of `create` and `replace` go on in between, and the records that they begin
   * count too if they end here. It resolves once there was a moment, after it was called, at which the minimum password
   * version held and no record was left. If time runs out before, it rejects with `'unknown'`; a repeated call does the rest.
   */
  deleteUser(userId: string, options: DeleteUserOptions, call: StoreCall): Promise<number>
  /**
   * The user's live records of one kind, in any order. Corrupt ones are left out. One that lives from the call to the
   * answer is among them, also if it gets a new ID meanwhile: under one of its keys, or under both.
   */
  listUser(userId: string, kind: SessionRecord['kind'], call: StoreCall): Promise<SessionRecord[]>
  /**
   * Removes at most `limit` records that expired more than `SWEEP_MARGIN` before `now`, and forwards and minimum password
   * versions past their time; answers how many. Not implemented if the backend expires keys by itself.
   */
  sweep?(limit: number, call: StoreCall): Promise<number>
  /**
   * One page of everything stored, in the store's own order. `null` begins; `next` of the page before continues, also
   * on another connection or node. About `limit` entries; a page may be empty and not the last.
   *
   * A key that holds a record or a forward from the call of the first page to the answer of the last is in one of the
   * pages, at least once, as it was at some moment in between. Records that begin or end meanwhile may be in them or not.
   * So a walk that deletes each user and each key that it meets ends every session that existed when it began, also
   * those that get a new ID meanwhile: the old key holds their forward.
   *
   * Not implemented: the manager's `count`, `all` and `invalidateAll` say so.
   */
  scan?(cursor: string | null, limit: number, call: StoreCall): Promise<ScanPage>
  /**
   * How many live records of kind `'session'` there are. Not implemented if only a walk over all of them would tell:
   * then the manager walks.
   */
  count?(call: StoreCall): Promise<number>
  /**
   * 3 characters of `A-Z a-z 0-9 _ -` that begin the IDs, and so the keys, of this user's sessions: a sharded backend
   * keeps them together. Not implemented: they are random.
   */
  shard?(userId: string): string
  /** Closes what the store itself opened; a client that the application passed in stays open. */
  close?(): Promise<void>
  /**
   * True where one request cannot wait for what another began, as with D1 on Workers: writers of a session then do not queue in
   * the process, but meet in `version`.
   */
  readonly isPerRequest?: boolean
}
