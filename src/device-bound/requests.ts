// The two requests that browsers send by themselves: to register a key for a session, and to prove that they have it.
import { SessionError } from '../contract/errors.ts'
import type { AnySession } from '../session/session.ts'
import { busy, challenged, type DeviceAnswer, instructed, over, refused } from './answers.ts'
import { type Asked, headerOf } from './asked.ts'
import * as bindings from './binding.ts'
import type { Devices } from './devices.ts'
import { headerText, type Proof, readProof, verifyRefresh, verifyRegistration } from './proof.ts'

const NO_TOUCH = { touch: false } as const

/** Answers a request to one of the two paths. */
export async function answer(devices: Devices, step: 'register' | 'refresh', request: Asked): Promise<DeviceAnswer> {
  const text = (name: string) => headerText(headerOf(request, name))
  const proof = text('secure-session-response')
  try {
    if (step === 'register') return await register(devices, request, proof)
    return await refresh(devices, request, text('sec-secure-session-id'), proof)
  } catch (error) {
    if (error instanceof SessionError && error.status === 503) return busy()
    throw error
  }
}

/**
 * Binds a session to the key that a browser has made for it. An answer that is not genuine leaves the offer open; the
 * genuine one takes it by the write that stores the key. So a logout, the end of the user's sessions and another login
 * all win against it.
 */
async function register(devices: Devices, request: Asked, text: string | null | undefined): Promise<DeviceAnswer> {
  const { sessions, setup } = devices
  if (!text) return refused(400, 'no_proof')
  const { id, session, isAmbiguous } = await devices.chosen(request)
  // Which one is the browser's own nobody can tell: that is no logout.
  if (isAmbiguous) return busy()
  if (session === null) return refused(401, 'no_session')
  const offer = bindings.offerIn(session, devices.now())
  if (offer === null) return refused(403, 'no_offer')
  const proof = readProof(text, 'registration')
  if (proof === 'malformed') return refused(400, proof)
  if (!bindings.answers(proof.jti, [id!, session.secret], offer, bindings.offerChallenge))
    return refused(400, 'challenge')
  const verified = verifyRegistration(proof)
  if (typeof verified === 'string') return refused(400, verified)
  const { binding, value } = bindings.newBinding(verified.key, session.createdAt, devices.now(), setup.lifetime)
  const written = await write(devices, session, current =>
    bindings.offerIn(current, devices.now()) === offer ? binding : refused(403, 'no_offer'),
  ).catch(async error => {
    // It may have been written, and no browser would have its value: an outage must not end the session.
    const again = await sessions.get(id, NO_TOUCH)
    if (again !== null && bindings.bindingIn(again)?.id === binding.id) return again
    throw error
  })
  if (written === null) return refused(401, 'no_session')
  if ('status' in written) return written
  devices.tell('device-bound', written)
  return instructed(setup, written.secret, binding, value)
}

/**
 * Renews the bound value of a browser that proves its key: one read and one write. A proof is good once: the write that
 * stores the new value stores the next challenge. If there is no such session any more, the browser forgets its own.
 */
async function refresh(
  devices: Devices,
  asked: Asked,
  name: string | null | undefined,
  text: string | null | undefined,
): Promise<DeviceAnswer> {
  if (!name) return refused(400, 'no_session_id')
  if (text === null) return refused(400, 'malformed')
  const { id, session, isAmbiguous } = await devices.chosen(asked)
  if (isAmbiguous) return busy()
  if (session === null || bindings.bindingIn(session)?.id !== name) return over()
  const proof = text === undefined ? null : readProof(text, 'refresh')
  if (proof === 'malformed') return refused(400, proof)
  const request = { name, proof, ids: [id!, session.secret] }
  let value: string | null = null
  const written = await write(devices, session, current => {
    const step = next(devices, bindings.bindingIn(current), request)
    if ('status' in step) return step
    value = step.value
    return step.binding
  })
  if (written === null) return over()
  if ('status' in written) {
    if (written.isTheft) await devices.endStolen(session)
    return written
  }
  const binding = bindings.bindingIn(written)!
  const { secret } = written
  return value === null ? challenged(secret, binding) : instructed(devices.setup, secret, binding, value)
}

interface Refresh {
  readonly name: string
  readonly proof: Proof | null
  /** The ID that came, and the one that it leads to. */
  readonly ids: readonly string[]
}

/** An answer that writes nothing. `isTheft`: the proof was signed by another key. */
type Told = DeviceAnswer & { readonly isTheft?: boolean }

/** The result of a refresh: the binding to write, with its new value if there is one, or the answer. */
function next(
  devices: Devices,
  before: bindings.Binding | null,
  { name, proof, ids }: Refresh,
): { binding: bindings.Binding; value: string | null } | Told {
  if (before?.id !== name) return over()
  const { setup } = devices
  const now = devices.now()
  const { challenge } = before
  const [id] = ids.slice(-1) as [string]
  if (now >= challenge.end) return { binding: { ...before, challenge: bindings.newChallenge(now) }, value: null }
  // Of parallel proofs for one challenge one is good, and the others sign the next one.
  if (proof === null || !bindings.answers(proof.jti, ids, challenge.salt, bindings.refreshChallenge))
    return challenged(id, before)
  const refusal = verifyRefresh(proof, before.device)
  if (refusal !== null) return { ...refused(400, refusal), isTheft: refusal === 'signature' }
  // A browser whose responses are lost asks again and again: no value that is good is given up for one more.
  if (bindings.isFull(before, now)) return instructed(setup, id, before, null)
  return bindings.proved(before, now, setup.lifetime)
}

/**
 * Writes the binding that `make` derives from the current one; if it makes an answer instead, nothing is written. `null`: the
 * session has gone.
 */
async function write<A extends DeviceAnswer>(
  { sessions }: Devices,
  session: AnySession,
  make: (current: bindings.Kept) => bindings.Binding | A,
): Promise<AnySession | A | null> {
  let answer: A | null = null
  const nothing = new Error('nothing is written')
  try {
    const change = (draft: Record<string, unknown>) => {
      const made = make({ data: draft, createdAt: session.createdAt })
      if ('status' in made) {
        answer = made
        throw nothing
      }
      bindings.put(draft, made)
    }
    return await sessions.update(session, change)
  } catch (error) {
    if (error === nothing) return answer
    throw error
  }
}
