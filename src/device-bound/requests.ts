// The two requests that browsers send by themselves: to register a key for a session, and to prove that they have it. Statuses
// matter: at 400, 401, 403 without a challenge and 429 Chromium forgets the session that it keeps for the device, at 503 it
// tries again.
import { SessionError } from '../contract/errors.ts'
import type { AnySession } from '../session/session.ts'
import { warnOnce } from '../text/warn-once.ts'
import { choose } from '../visits/choose.ts'
import { type Binding, bindingIn, challengeFor, isMade, isOpen, nameOf, OFFER_LIFE, valueFor } from './binding.ts'
import { type Asked, endStolen, headerOf, tell, write } from './devices.ts'
import type { Setup } from './options.ts'
import { headerText, readProof, verifyProof } from './proof.ts'

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
  const now = setup.now()
  if (offer === null || !isOpen(offer, now)) return refused(403, 'no_offer')
  const proof = readProof(text, 'registration')
  if (proof === 'malformed') return refused(400, proof)
  const make = (time: number) => challengeFor(session, offer, '', time)
  if (!isMade(proof.jti, make, OFFER_LIFE, now)) return refused(400, 'challenge')
  const verified = verifyProof(proof)
  if (typeof verified === 'string') return refused(400, verified)
  const bound = { ...offer, device: verified.key, of: session.createdAt, boundAt: now }
  const binding = await write(setup, session, before => (before?.device === '' ? bound : before))
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
  if (session === null || !binding?.device || nameOf(binding) !== name) return answer(200, { continue: false })
  const proof = text === undefined ? null : readProof(text, 'refresh')
  if (proof === 'malformed') return refused(400, proof)
  const make = (time: number) => challengeFor(session, binding, binding.device, time)
  if (proof === null || !isMade(proof.jti, make, setup.lifetime, setup.now()))
    return answer(403, { error: 'challenge' }, challenge(setup, session, binding))
  const verified = verifyProof(proof, binding.device)
  if (typeof verified !== 'string') return instructed(setup, session, binding)
  if (verified === 'signature') await endStolen(setup, session)
  return refused(400, verified)
}

const answer = (status: number, body: object, headers: Readonly<Record<string, string>> = {}): Response =>
  Response.json(body, { status, headers: { 'Cache-Control': 'no-store', ...headers } })

/** The request proves nothing, and changes nothing. */
const refused = (status: 400 | 401 | 403, error: string): Response => answer(status, { error })

/** Try again: the store is out, or nobody can tell which cookie counts. */
const busy = (): Response => answer(503, { error: 'busy' }, { 'Retry-After': '5' })

/** The header with the challenge of the next proof. */
export const challenge = ({ now }: Setup, session: AnySession, binding: Binding) => ({
  'Secure-Session-Challenge': `"${challengeFor(session, binding, binding.device, now())}";id="${nameOf(binding)}"`,
})

/** The browser's instructions for its session, with the next value of the bound cookie, and the challenge of the next proof. */
function instructed(setup: Setup, session: AnySession, binding: Binding): Response {
  const { cookie, maxAge, attributes, refreshPath, exclude, now } = setup
  const body = {
    session_identifier: nameOf(binding),
    refresh_url: refreshPath,
    scope: { include_site: false, scope_specification: exclude.map(path => ({ type: 'exclude', path })) },
    credentials: [{ type: 'cookie', name: cookie.name, attributes }],
  }
  const value = cookie.serializeValue(valueFor(session, binding, binding.device, now()), maxAge)
  return answer(200, body, { 'Set-Cookie': value, ...challenge(setup, session, binding) })
}
