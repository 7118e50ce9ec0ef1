// The two requests that browsers send by themselves: to register a key for a session, and to prove that they have it.
import { SessionError } from '../contract/errors.ts'
import type { AnySession } from '../session/session.ts'
import { warnOnce } from '../text/warn-once.ts'
import { choose } from '../visits/choose.ts'
import { busy, challenged, instructed, over, refused } from './answers.ts'
import { type Asked, headerOf } from './asked.ts'
import { bindingIn, isMade, isOpen, nameOf, offerChallenge, refreshChallenge } from './binding.ts'
import { endStolen, tell, write } from './devices.ts'
import type { Setup } from './options.ts'
import { headerText, isSame, readProof, verifyRefresh, verifyRegistration } from './proof.ts'

/** The answer to a request to one of the two paths; `null` for any other. Never rejects: nobody would catch it there. */
export async function answerAt(setup: Setup, path: string, request: Asked): Promise<Response | null> {
  const { registerPath, refreshPath, sessionCookie, sessions } = setup
  if (request.method !== 'POST' || (path !== registerPath && path !== refreshPath)) return null
  const text = (name: string) => headerText(headerOf(request, name))
  const proof = text('secure-session-response')
  const name = text('sec-secure-session-id')
  const isRegistration = path === registerPath
  if (isRegistration && !proof) return refused(400, 'no_proof')
  if (!isRegistration && !name) return refused(400, 'no_session_id')
  if (proof === null) return refused(400, 'malformed')
  try {
    const ids = sessionCookie.candidates(headerOf(request, 'cookie'))
    const { session, isAmbiguous } = await choose<AnySession>(sessions, ids)
    // Which one is the browser's own nobody can tell: that is no logout.
    if (isAmbiguous) return busy()
    return isRegistration ? await register(setup, session, proof!) : await refresh(setup, session, name!, proof)
  } catch (error) {
    // A failure of the store is told by an event.
    if (!(error instanceof SessionError)) warnOnce('COATCHECK_DEVICE', `${path} failed: ${error}`)
    return busy()
  }
}

/**
 * Binds a session to the key that a browser has made for it. An answer that is not genuine leaves the offer open; the
 * genuine one takes it by the write that stores the key. So a logout, the end of the user's sessions and another login
 * all win against it.
 */
async function register(setup: Setup, session: AnySession | null, text: string): Promise<Response> {
  if (session === null) return refused(401, 'no_session')
  const offer = bindingIn(session)
  if (offer === null || !isOpen(offer, setup.now())) return refused(403, 'no_offer')
  const proof = readProof(text, 'registration')
  if (proof === 'malformed') return refused(400, proof)
  if (!isSame(proof.jti, offerChallenge(session, offer))) return refused(400, 'challenge')
  const verified = verifyRegistration(proof)
  if (typeof verified === 'string') return refused(400, verified)
  const bound = { ...offer, device: verified.key, of: session.createdAt, boundAt: setup.now() }
  const binding = await write(setup, session, now => (now?.device === '' ? bound : now))
  if (binding === null) return refused(401, 'no_session')
  // The same key again is the same registration, whose answer was lost.
  if (binding.device !== verified.key) return refused(403, 'no_offer')
  if (binding === bound) tell(setup, 'device-bound', session)
  return instructed(setup, session, binding)
}

/**
 * Renews the bound value of a browser that proves its key: one read, and no write, so that a store that is full logs nobody
 * out. A challenge lasts as long as a value: one that is answered again in that time, by the same key, proves the same.
 * If there is no such session any more, the browser forgets its own.
 */
async function refresh(setup: Setup, session: AnySession | null, name: string, text?: string): Promise<Response> {
  const binding = session && bindingIn(session)
  if (session === null || !binding?.device || nameOf(binding) !== name) return over()
  const proof = text === undefined ? null : readProof(text, 'refresh')
  if (proof === 'malformed') return refused(400, proof)
  const make = (time: number) => refreshChallenge(session, binding, time)
  if (proof === null || !isMade(proof.jti, make, setup.lifetime, setup.now()))
    return challenged(setup, session, binding)
  const refusal = verifyRefresh(proof, binding.device)
  if (refusal === null) return instructed(setup, session, binding)
  if (refusal === 'signature') await endStolen(setup, session)
  return refused(400, refusal)
}
