const U64 = /^(0|[1-9][0-9]{0,19})$/
const MAX_U64 = '18446744073709551615'

/** A user ID as the tables keep it: the namespace apart, so that `user_id` joins with the application's own table. */
export interface UserValues {
  readonly tenant: string
  readonly userId: string
}

export const isU64 = (text: string) => U64.test(text) && (text.length < 20 || text <= MAX_U64)

/** Splits a canonical user ID at its last tab: a namespaced manager writes `name + '\t' + id`. */
export function splitUser(userId: string): UserValues {
  const tab = userId.lastIndexOf('\t')
  return tab <= 0 ? { tenant: '', userId } : { tenant: userId.slice(0, tab), userId: userId.slice(tab + 1) }
}

/** The reverse of `splitUser`. */
export const joinUser = (tenant: string, user: string) => (tenant === '' ? user : `${tenant}\t${user}`)

/** Says why a user ID cannot be kept exactly, or `null`. */
export function userFault(given: string, kind: 'bigint' | 'string'): string | null {
  if (typeof given !== 'string' || given === '') return 'the user ID is not text or is empty'
  // A database would replace a lone surrogate, and two users would become one.
  if (!given.isWellFormed() || given.includes('\0')) return 'the user ID is not well-formed Unicode without NUL'
  const { tenant, userId } = splitUser(given)
  if (kind === 'bigint' && !isU64(userId))
    return "the user ID is not an integer from 0 to 2^64-1; give the store the option userIds: 'string'"
  return tenant.length > 200 || userId.length > 200 ? 'the user ID is longer than 200 characters' : null
}
