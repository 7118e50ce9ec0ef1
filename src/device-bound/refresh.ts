import type { SessionRecord } from '../contract/store.ts'
import type { AnyContext } from '../manager/context.ts'
import { chainFrom, find } from '../manager/lookup.ts'
import { write } from '../manager/writing.ts'
import { newSalt, newWriteId } from '../session/id.ts'
import type { DeviceAnswer, DeviceCall } from '../visits/devices.ts'
import { busy, challenged, instructed, over, refused } from './answers.ts'
import {
  answers,
  type Binding,
  bindingIn,
  CHALLENGE_LIFE,
  isFull,
  proved,
  refreshChallenge,
  valueIn,
  withBinding,
} from './binding.ts'
import { endStolen } from './end.ts'
import type { Setup } from './options.ts'
import { headerText, verifyRefresh } from './proof.ts'

/** Two values made within this time, in ms: parallel requests of one browser, which need no third one. */
const CROWD = 10_000

/** What one attempt came to: the record's new binding, and the value of the cookie where there is a new one. */
interface Step {
  readonly binding: Binding
  readonly value: string | null
  readonly isChallenge: boolean
}

/**
 * Renews the bound value of a browser that proves its key: one read and one write. A proof is good once: the write that
 * stores the new value stores the next challenge. Where there is no such session any more, the browser forgets its own.
 */
export async function refresh(context: AnyContext, setup: Setup, call: DeviceCall): Promise<DeviceAnswer> {
  const deadline = context.deadline()
  const name = headerText(call.sessionId)
  if (name === null) return refused(400, 'no_session_id')
  const proof = headerText(call.proof)
  if (call.proof !== null && proof === null) return refused(400, 'malformed')
  const found = call.id === null ? null : await find(context, call.id, context.now(), deadline)
  if (found === null) return overOrMoved(context, call.id, name, deadline)
  const registered = bindingIn(found.record)
  if (registered?.id !== name) return over()
  const verified = proof === null ? null : verifyRefresh(proof, registered.device)
  if (verified === 'signature') await endStolen(context, found.record, deadline)
  if (typeof verified === 'string') return refused(400, verified)
  const jti = verified?.jti ?? ''
  const answer = await write(context, 'update', found, deadline, async ({ id, record }) => {
    const before = bindingIn(record)
    if (before?.id !== name) return { value: over() }
    const now = context.now()
    const step = stepFrom(setup, before, { jti, ids: [call.id!, id], cookie: call.cookie }, now)
    const { binding, value, isChallenge } = step
    const told = isChallenge ? challenged(id, binding) : instructed(setup, id, binding, value)
    if (binding === before) return { value: told }
    const change = changeOf(record, binding)
    const outcome = await context.calls.update(record.key, record.version, change, { now, deadline })
    if (outcome !== 'updated') return outcome
    return { value: told, latest: { ...record, ...change, version: record.version + 1 } }
  })
  return answer ?? overOrMoved(context, found.id, name, deadline)
}

/**
 * The session is over; or it has a new ID, whose cookie is on its way to the browser. It asks again then: told that the
 * session is over, it would forget its key, and be locked out of a session that lives.
 */
async function overOrMoved(
  context: AnyContext,
  id: string | null,
  name: string,
  deadline: number,
): Promise<DeviceAnswer> {
  if (id === null) return over()
  const { keys, record } = await chainFrom(context, context.keyOf(id), { now: context.now(), deadline })
  return keys.length > 1 && record !== null && bindingIn(record)?.id === name ? busy() : over()
}

/** The visit is not prolonged: a refresh is the browser's doing, and no sign of a user. */
const changeOf = (record: SessionRecord, binding: Binding) => ({
  data: withBinding(record, binding),
  seenAt: record.seenAt,
  expiresAt: record.expiresAt,
  writeId: newWriteId(),
})

interface Presented {
  readonly jti: string
  readonly ids: readonly string[]
  readonly cookie: DeviceCall['cookie']
}

/** What follows from a proof; the same binding where nothing has to be written. */
function stepFrom(setup: Setup, before: Binding, { jti, ids, cookie }: Presented, now: number): Step {
  const { challenge, spent, values } = before
  const as = (binding: Binding, value: string | null, isChallenge = false): Step => ({ binding, value, isChallenge })
  if (now < challenge.end && answers(jti, ids, challenge.salt, refreshChallenge)) {
    // Browsers ask ahead. Who has a value that is good for long needs no other, and none that is good is given up for it.
    if (isFull(before, now) || holdsYoung(setup, before, cookie, now)) return as(before, null)
    const { binding, value } = proved(before, now, setup.lifetime)
    return as(binding, value)
  }
  // Of parallel proofs for one challenge one is good, the others sign the next; in a crowd, the cookie is on its way.
  const isCrowd = values[1] !== undefined && values[1].end - setup.lifetime > now - CROWD
  if (isCrowd && answers(jti, ids, spent, refreshChallenge)) return as(before, null)
  if (now < challenge.end) return as(before, null, true)
  return as({ ...before, challenge: { salt: newSalt(), end: now + CHALLENGE_LIFE } }, null, true)
}

/** Whether the browser holds the newest value, in the first half of its life. */
function holdsYoung({ cookie, lifetime }: Setup, binding: Binding, header: DeviceCall['cookie'], now: number): boolean {
  const { id } = cookie.parse(header)
  const held = id === null ? null : valueIn(binding, id)
  return held !== null && held === binding.values[0] && held.end - now > lifetime / 2
}
