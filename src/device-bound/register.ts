import type { AnyContext, Found } from '../manager/context.ts'
import { find } from '../manager/lookup.ts'
import { type Attempt, write } from '../manager/writing.ts'
import { newWriteId, type SessionKey } from '../session/id.ts'
import type { DeviceAnswer, DeviceCall } from '../visits/devices.ts'
import { instructed, refused } from './answers.ts'
import { answers, bindingIn, CHALLENGE_LIFE, deviceIn, newBinding, offerChallenge, withBinding } from './binding.ts'
import type { Setup } from './options.ts'
import { headerText, verifyRegistration } from './proof.ts'

/** The session as it was found last, or that another registration came first. */
type Written = Pick<Found, 'id' | 'record'> | 'taken'

/** The salt of the offer that a session still has. */
export function offerOf({ record }: Pick<Found, 'record'>, now: number): string | null {
  const device = deviceIn(record)
  const isOpen = now < record.createdAt + CHALLENGE_LIFE
  return isOpen && device !== null && device !== 'broken' && 'offer' in device ? device.offer : null
}

/**
 * Binds a session to the key that a browser has made for it. What is not a genuine answer to the offer leaves it open; the
 * genuine one takes it by the write that stores the key, so that a logout, the end of the user's sessions and another
 * login all win against it.
 */
export async function register(context: AnyContext, setup: Setup, call: DeviceCall): Promise<DeviceAnswer> {
  const deadline = context.deadline()
  const proof = headerText(call.proof)
  if (proof === null) return refused(400, 'no_proof')
  const now = context.now()
  const found = call.id === null ? null : await find(context, call.id, now, deadline)
  if (found === null) return refused(401, 'no_session')
  const offer = offerOf(found, now)
  if (offer === null) return refused(403, 'no_offer')
  const verified = verifyRegistration(proof, setup.algorithms)
  if (typeof verified === 'string') return refused(400, verified)
  if (!answers(verified.jti, [call.id!, found.id], offer, offerChallenge)) return refused(400, 'challenge')
  const { binding, value } = newBinding(verified.device, now, setup.lifetime)
  const attempt = async ({ id, record }: Found): Promise<Attempt<Written> | 'conflict' | 'gone'> => {
    if (offerOf({ record }, now) !== offer) return { value: 'taken' }
    const { seenAt, expiresAt } = record
    const change = { data: withBinding(record, binding), seenAt, expiresAt, writeId: newWriteId() }
    const outcome = await context.calls.update(record.key, record.version, change, { now: context.now(), deadline })
    if (outcome !== 'updated') return outcome
    return { value: { id, record }, latest: { ...record, ...change, version: record.version + 1 } }
  }
  const written = await write(context, 'update', found, deadline, attempt).catch(async error => {
    // It may have been written, and no browser would have its value: an outage must not end the session.
    const again = await find(context, found.id, context.now(), context.deadline())
    if (again !== null && bindingIn(again.record)?.id === binding.id) return again
    throw error
  })
  if (written === null) return refused(401, 'no_session')
  if (written === 'taken') return refused(403, 'no_offer')
  const { key } = written.record
  context.emit({ type: 'device-bound', key: key as SessionKey, userId: context.userIdOf(written.record) })
  return instructed(setup, written.id, binding, value)
}
