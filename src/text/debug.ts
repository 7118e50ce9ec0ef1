import * as util from 'node:util'

// Not by its name: a runtime whose node:util is partial could not load this module.
const log = util.debuglog?.('coatcheck')

/** Whether `NODE_DEBUG` names coatcheck. Asked first, so that a reason costs nothing if nobody reads it. */
// Without the variable workerd says that every log is wanted.
export const IS_DEBUG: boolean = log?.enabled === true && !!globalThis.process?.env?.NODE_DEBUG

/** Prints why a request has no session. `key`: of the session that its cookie leads to, never an ID. */
export function noSession(reason: string, key: string | null = null): void {
  log(`no session: ${reason}${key === null ? '' : `, key ${key}`}`)
}
