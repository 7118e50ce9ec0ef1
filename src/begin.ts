import type { Context } from './context.ts'
import { deriveId, newId, newSalt, newWriteId, shardOf } from './id.ts'
import { find, findAgain, findCurrent, idOf, newer } from './lookup.ts'
import { type Current, type Session, wasFollowed } from './session.ts'
import type { SessionRecord } from './store.ts'
import type { UserIds } from './user-id.ts'
import type { Login, Owner } from './users.ts'

const MAX_COLLISIONS = 5

/** Stores a session that did not exist before, under a new ID. */
export async function begin<D extends object, I extends UserIds>(
  context: Context<D, I, any>,
  owner: Owner,
  data: string,
  deadline: number,
): Promise<Session<D, I>> {
  for (let tries = 0; tries < MAX_COLLISIONS; tries += 1) {
    const id = newId(context.users.shardOf(owner.userId))
    const now = context.now()
    const record = context.newRecord(id, owner, data, now)
    const { outcome, ended } = await context.calls.create(record, { now, ...context.limitFor(owner) }, deadline)
    context.noticeLimit(ended, owner)
    if (outcome === 'created') return context.created(record, id)
    if (outcome !== 'collision') throw context.refusal(outcome)
  }
  throw context.refusal('collision')
}

/** A new identity: the old session, whoever's, ends in the same step in which the new one begins. */
export async function logIn<D extends object, I extends UserIds, In extends object>(
  context: Context<D, I, In>,
  current: Current<D, I>,
  login: Login<D, I, In>,
): Promise<Session<D, I>> {
  const { calls } = context
  const owner = context.users.ownerOf(login.user)
  const deadline = calls.deadline()
  const id = idOf(current)
  const start = await findCurrent(context, current, deadline)
  const beginAfresh = () => begin(context, owner, context.firstData(login.data, null), deadline)
  if (id === null || start === null) return beginAfresh()
  if (start === 'moved') {
    await context.end(context.keyOf(id), null, 'logout', deadline)
    return beginAfresh()
  }
  return inLine(context, start.record.key, deadline, async latest => {
    let record = newer(latest, start.record)
    for (let attempt = 0; ; attempt += 1) {
      const isOthers = record.userId !== null && record.userId !== owner.userId
      const data = context.firstData(login.data, isOthers ? null : record)
      const now = context.now()
      const nextId = newId(context.users.shardOf(owner.userId))
      const next = context.newRecord(nextId, owner, data, now)
      const options = { now, ...context.limitFor(owner) }
      const { outcome, ended } = await calls.replace(record.key, record.version, next, options, deadline)
      context.noticeLimit(ended, owner)
      if (outcome === 'created') return context.regenerated(record.key, next, nextId)
      if (outcome === 'collision') continue
      if (outcome !== 'conflict' && outcome !== 'gone') throw context.refusal(outcome)
      const again = outcome === 'conflict' ? await findAgain(context, start.id, outcome, attempt, deadline) : null
      if (again === null) {
        // Ended or renewed by a parallel request: its successor ends too, then this login begins on its own.
        await context.end(record.key, record.userId, 'logout', deadline)
        return beginAfresh()
      }
      record = again.record
    }
  })
}

/** The same session under a new ID: derived from the old one where there is a grace (in ms), random otherwise. */
export async function reissue<D extends object, I extends UserIds>(
  context: Context<D, I, any>,
  current: Current<D, I>,
  grace: number | null,
): Promise<Session<D, I> | null> {
  const { calls } = context
  const deadline = calls.deadline()
  const start = await findCurrent(context, current, deadline)
  if (start === null || start === 'moved') return null
  // A parallel request renewed it already: everybody gets the same new cookie.
  const isFollowed = typeof current === 'object' && current !== null ? wasFollowed(current) : start.id !== idOf(current)
  if (grace !== null && isFollowed) return context.session(start.record, start.id, true)
  return inLine(context, start.record.key, deadline, async latest => {
    let { id } = start
    let record = newer(latest, start.record)
    for (let attempt = 0; ; attempt += 1) {
      const now = context.now()
      const salt = grace === null ? '' : newSalt()
      const nextId = grace === null ? newId(shardOf(id)) : deriveId(shardOf(id), id, 'renew', salt)
      const key = context.keyOf(nextId)
      const next = { ...record, ...context.seen(record, now), key, version: 1, writeId: newWriteId() }
      const forward = { salt, until: now + (grace ?? 0) }
      const { outcome } = await calls.replace(record.key, record.version, next, { now, forward }, deadline)
      if (outcome === 'created') return context.regenerated(record.key, next, nextId)
      if (outcome === 'collision') continue
      if (outcome !== 'conflict' && outcome !== 'gone') throw context.refusal(outcome)
      const again = await findAgain(context, id, outcome, attempt, deadline)
      if (again === null) return null
      if (grace !== null && again.id !== id) return context.session(again.record, again.id, true)
      id = again.id
      record = again.record
    }
  })
}

/** Takes turns with the writers of this session in this process. */
function inLine<T>(
  { lines, calls }: Context<any, any, any>,
  key: string,
  deadline: number,
  job: (latest: SessionRecord | null) => Promise<T>,
): Promise<T> {
  return lines.run(
    key,
    deadline,
    line => job(line.latest),
    () => calls.fail('replace', 'not-applied', 'replace: earlier writers of this session took all of storeTimeout'),
  )
}

/** A session that follows from a remember token: its ID is given, its life hangs on the series. */
export async function beginRemembered<D extends object, I extends UserIds>(
  context: Context<D, I, any>,
  id: string,
  series: SessionRecord,
  deadline: number,
): Promise<Session<D, I> | null> {
  const now = context.now()
  const { userId, username, passwordVersion } = series
  const owner = { userId, username, passwordVersion }
  const fresh = context.newRecord(id, owner, context.shape.first(undefined), now)
  // Stored as not yet seen, so that its first visit is written down: that tells a lost response from a theft.
  const record = { ...fresh, parent: series.key, seenAt: now - context.options.touchInterval }
  const { outcome, ended } = await context.calls.create(record, { now, ...context.limitFor(owner) }, deadline)
  context.noticeLimit(ended, owner)
  if (outcome === 'created') return context.created(record, id)
  if (outcome === 'limit') throw context.refusal(outcome)
  if (outcome !== 'collision') return null
  const found = await find(context, id, now, deadline)
  return found === null || found === 'moved' ? null : context.session(found.record, found.id, true)
}
