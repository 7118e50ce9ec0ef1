// `create` and `replace`: the record becomes live, in place of another one or beside it, within the user's limit, on one
// slot or across two.
import { randomBytes } from 'node:crypto'
import {
  type CreateOptions,
  FORWARD_LIFETIME,
  type ReplaceResult,
  type SessionRecord,
  SWEEP_MARGIN,
} from '../../src/contract/store.ts'
import type { Call } from './commands.ts'
import { decode, encodeForward, encodeRecord, text } from './format.ts'
import { type Keys, memberOf, shardOfKey } from './keys.ts'
import { refusalOf } from './refusals.ts'
import { END, PUT, UNDO, WINDOW } from './scripts.ts'
import { CHUNK, chunks, type UserIndex } from './user-index.ts'

/** The options of a `create` or `replace` together with the caller's clock. */
export type PutOptions = CreateOptions & { readonly now: number }

/** The record that a replacement ends. */
export interface Old {
  readonly key: string
  readonly version: number
}

/** A step of a replacement that takes several: which one, and which attempt it belongs to. */
interface Step {
  name: '' | 'prepare' | 'confirm'
  attempt: string
  /** The old record has the same parent: whether that is live is not asked again. */
  hasParent: boolean
}
const ONLY_STEP: Step = Object.freeze({ name: '', attempt: '', hasParent: false })
const isPrepared = ({ outcome }: { outcome: string }) => outcome === 'prepared'

/** Makes records live: the part that `create` and `replace` share. */
export class RecordWriter {
  readonly #keys: Keys
  readonly #users: UserIndex
  readonly #isCluster: boolean

  constructor(keys: Keys, users: UserIndex, isCluster: boolean) {
    this.#keys = keys
    this.#users = users
    this.#isCluster = isCluster
  }

  create(call: Call, record: SessionRecord, options: PutOptions): Promise<ReplaceResult> {
    return this.#put(call, record, options, null)
  }

  replace(call: Call, record: SessionRecord, options: PutOptions, old: Old): Promise<ReplaceResult> {
    return this.#isCluster && shardOfKey(old.key) !== shardOfKey(record.key)
      ? this.#moveAcross(call, record, options, old)
      : this.#put(call, record, options, old)
  }

  async #put(
    call: Call,
    record: SessionRecord,
    options: PutOptions,
    old: Old | null,
    step: Step = ONLY_STEP,
  ): Promise<ReplaceResult> {
    const { now, limit, forward } = options
    const { key, userId, parent } = record
    const shard = shardOfKey(key)
    const session = this.#keys.session(key)
    const life = Math.max(0, record.expiresAt - now) + SWEEP_MARGIN
    const limited = limit !== undefined && userId !== null && record.kind === 'session'
    const ownParent = parent !== null && shardOfKey(parent) === shard
    const args = [
      encodeRecord(record),
      life,
      Math.max(life, record.absoluteExpiresAt - now + SWEEP_MARGIN),
      step.hasParent ? '' : (parent ?? ''),
      ownParent ? 'own' : 'elsewhere',
      limited ? limit.max : 0,
      limited ? limit.onLimit : '',
      old?.version ?? '',
      old && forward ? encodeForward(key, forward, now) : '',
      forward ? Math.max(0, forward.until - now) + FORWARD_LIFETIME + SWEEP_MARGIN : 0,
      step.name,
      step.attempt,
    ]
    const oldSession = old ? this.#keys.session(old.key) : session
    const keys =
      userId === null
        ? old
          ? [session, oldSession]
          : [session]
        : [
            session,
            oldSession,
            this.#keys.index(userId),
            this.#keys.floor(userId),
            ownParent ? this.#keys.session(parent) : session,
          ]
    const ended: string[] = []
    let members: string[] = []
    for (;;) {
      const [outcome, ...rest] = await call.run(PUT, {
        shard,
        keys: [...keys, ...members.map(member => this.#keys.session(shard + member))],
        now,
        args,
        acknowledged: old !== null,
      })
      if (outcome === 'prepared') step.attempt = text(rest[0])
      if (outcome !== 'again') {
        for (const member of rest) if (outcome === 'created') ended.push(shard + text(member))
        return { outcome: outcome as ReplaceResult['outcome'], ended }
      }
      const [others, ...named] = rest
      if (Number(others) <= WINDOW) members = named.map(text)
      else {
        const left = await this.#thinOut(call, userId!, { now, limit: limit! }, [key, old?.key])
        if (left.isFull) return { outcome: 'limit', ended }
        for (const each of left.ended) ended.push(each)
        members = left.members
      }
    }
  }

  // Where a user has far more sessions than a script should look at: ends what is beyond the limit, in pieces. What a
  // limit says of the last one is for the script to decide.
  async #thinOut(
    call: Call,
    userId: string,
    { now, limit }: Pick<Required<PutOptions>, 'now' | 'limit'>,
    own: readonly (string | undefined)[],
  ): Promise<{ isFull: boolean; ended: string[]; members: string[] }> {
    const living: SessionRecord[] = []
    const others: string[] = []
    const gone: string[] = []
    for await (const page of this.#users.records(call, userId))
      for (const { key, isStored, record } of page) {
        if (own.includes(key)) continue
        if (!isStored) gone.push(key)
        else if (record?.userId === userId && record.kind === 'session' && record.expiresAt > now) living.push(record)
        else others.push(key)
      }
    const isFull = limit.onLimit === 'refuse' && living.length >= limit.max
    living.sort((a, b) => a.createdAt - b.createdAt || (a.key < b.key ? -1 : 1))
    const surplus = limit.onLimit === 'refuse' ? [] : living.splice(0, Math.max(0, living.length - limit.max))
    const ended = surplus.map(({ key }) => key)
    if (ended.length > 0) call.partly = true
    const run = this.#users.ending(call, userId, { now, minPasswordVersionUntil: now })
    await Promise.all(chunks([...ended, ...gone].map(memberOf), CHUNK).map(part => run('part', part)))
    return { isFull, ended, members: [...living.map(({ key }) => key), ...others].map(memberOf) }
  }

  // Two slots of a cluster, so three steps: the new record is prepared, which is not live; the old one is ended, which
  // decides; the new one becomes live. A process that dies in between leaves the old session as it was, or neither.
  async #moveAcross(call: Call, record: SessionRecord, options: PutOptions, old: Old): Promise<ReplaceResult> {
    const step: Step = { name: 'prepare', attempt: randomBytes(12).toString('base64url'), hasParent: false }
    let prepared = await this.#put(call, record, options, null, step)
    if (!isPrepared(prepared) && prepared.outcome !== 'created') {
      // What is to be said of the old session comes first; without a refusal its end will tell.
      const before = await this.#stored(call, old.key)
      if (before === null || before.expiresAt <= options.now) return { outcome: 'gone', ended: [] }
      if (before.version !== old.version) return { outcome: 'conflict', ended: [] }
      if (prepared.outcome !== 'orphan' || before.parent !== record.parent) return prepared
      step.hasParent = true
      prepared = await this.#put(call, record, options, null, step)
    }
    if (!isPrepared(prepared)) return prepared
    const [outcome] = await call.run(END, {
      shard: shardOfKey(old.key),
      keys: [this.#keys.session(old.key)],
      now: options.now,
      args: [old.version, step.attempt, FORWARD_LIFETIME + SWEEP_MARGIN],
      acknowledged: true,
    })
    if (outcome !== 'ended') {
      // Where this fails, it is gone in a moment by itself.
      await this.#undo(call, record, step.attempt).catch(() => {})
      return { outcome: outcome as 'gone' | 'conflict', ended: [] }
    }
    call.partly = true
    step.name = 'confirm'
    return this.#put(call, record, options, null, step)
  }

  async #stored(call: Call, key: string): Promise<SessionRecord | null> {
    const value = await call.read(shardOfKey(key), ['GET', this.#keys.session(key)]).catch(error => {
      if (refusalOf(error) === 'WRONGTYPE') return null
      throw error
    })
    const found = value === null || value === undefined ? null : decode(key, text(value))
    return found === null || 'corrupt' in found || found.movedTo !== undefined ? null : found
  }

  async #undo(call: Call, { key, userId }: SessionRecord, attempt: string) {
    const session = this.#keys.session(key)
    const keys = userId === null ? [session] : [session, this.#keys.index(userId)]
    await call.run(UNDO, { shard: shardOfKey(key), keys, now: 0, args: [attempt] })
  }
}
