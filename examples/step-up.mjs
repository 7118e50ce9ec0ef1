// @ts-check
// Step-up authentication ("sudo mode"): which proofs a session has given, and when (docs/guide/step-up.md). The names of the
// proofs are those of RFC 8176: 'pwd', 'otp', 'hwk' and so on.
/** @import { Change, UserIds, UserSession, Visit } from 'coatcheck' */

/** Spread it into `initial`. @returns {{ proofs: Record<string, number> }} */
export const proofs = () => ({ proofs: {} })

/** @param {number} status @param {string} message */
export const failure = (status, message) => Object.assign(new Error(message), { status, expose: true })

/**
 * Changes what a session may do. Its ID is new first: whoever copied the old one has none of it.
 * @template {object} D @template {UserIds} I
 * @param {Visit<D, I>} visit @param {Change<D, unknown>} change
 */
export async function withNewId(visit, change) {
  await visit.requireUser()
  await visit.regenerate()
  if ((await visit.update(change)) === null) throw failure(409, 'the session has ended or changed: try again')
}

/**
 * Call it when the proofs have been checked.
 * @template {ReturnType<typeof proofs>} D @template {UserIds} I
 * @param {Visit<D, I>} visit @param {...string} methods
 */
export const confirm = (visit, ...methods) =>
  withNewId(visit, data => methods.forEach(method => void Object.assign(data.proofs, { [method]: Date.now() })))

/**
 * The session of a user who gave all these proofs at most `within` ms ago. Else an error with status 401 that names in
 * `missing` what the user has to give.
 * @template {ReturnType<typeof proofs>} D @template {UserIds} I
 * @param {Visit<D, I>} visit @param {readonly string[]} methods @param {number} within
 * @returns {Promise<UserSession<D, I>>}
 */
export async function requireProof(visit, methods, within) {
  const session = await visit.requireUser()
  const missing = methods.filter(method => !(Date.now() - (session.data.proofs[method] ?? 0) <= within))
  if (missing.length > 0) throw Object.assign(failure(401, `confirm with ${missing.join(', ')}`), { missing })
  return session
}
