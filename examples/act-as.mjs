// @ts-check
// Support acts as a user (docs/guide/act-as.md). The session stays the actor's, and says for whom. It ends with the actor's
// logout, and the user's devices, limit and remember tokens never see it.
/** @import { UserIds, Visit } from 'coatcheck' */
import { failure, withNewId } from './step-up.mjs'

/** How long one may act as somebody, in ms. */
const LONGEST = 3_600_000

/** Spread it into `initial`. @returns {{ acting: { id: string, name: string, since: number } | null }} */
export const acting = () => ({ acting: null })

/**
 * @template {ReturnType<typeof acting>} D @template {UserIds} I
 * @param {Visit<D, I>} visit @param {{ id: bigint | number | string, name: string }} user
 * @param {(actor: { id: bigint | number | string, name: string }) => boolean | Promise<boolean>} mayAct as this user
 */
export async function actAs(visit, { id, name }, mayAct) {
  const { user: actor } = await visit.requireUser({ freshWithin: '15m' })
  if (`${id}` === `${actor.id}` || !(await mayAct(actor))) throw failure(403, 'you may not act as this user')
  await withNewId(visit, data => {
    if (data.acting !== null) throw failure(409, 'stop acting first')
    data.acting = { id: `${id}`, name, since: Date.now() }
  })
}

/** @template {ReturnType<typeof acting>} D @template {UserIds} I @param {Visit<D, I>} visit */
export const stopActing = visit => visit.update(data => void Object.assign(data, { acting: null }))

/**
 * In place of `requireUser`, where a page shows what is the user's: `user` is who it is about; `actor` is who really asks,
 * `null` if that is the user.
 * @template {ReturnType<typeof acting>} D @template {UserIds} I @param {Visit<D, I>} visit
 */
export async function requireWho(visit) {
  const { user, data } = await visit.requireUser()
  if (data.acting === null) return { user, actor: null }
  const { id, name, since } = data.acting
  // The ID as your handlers know it: a BigInt if yours are.
  if (Date.now() - since <= LONGEST) return { user: { id: Object(user.id).constructor(id), name }, actor: user }
  await stopActing(visit)
  throw failure(401, 'acting is over')
}
