// Devices with remember tokens.
import { CLOCK_TOLERANCE } from 'coatcheck/custom-store'
import { MemoryStore } from 'coatcheck/stores/memory'
import { barrierManagers } from './barrier-managers.ts'

export const DAY = 86_400_000
/** A minute, and what clocks may differ. */
export const GRACE = 60_000 + CLOCK_TOLERANCE
export const user = { id: 1, name: 'ada' }
export const times = (count: number) => Array.from({ length: count }, (_, index) => index)

export function setUpRemember(options: object = {}) {
  const at = barrierManagers(new MemoryStore(), { rememberFor: '30d', ...options })
  return { ...at, thefts: () => at.events.filter(({ type }) => type === 'remember-theft') }
}

/** A session that asked for a token a day ago. */
export async function device(at: ReturnType<typeof setUpRemember>, owner = user) {
  const session = await at.sessions.create({ user: owner })
  const token = await at.sessions.issueRememberToken(session)
  at.clock.advance(DAY)
  return { session, token }
}
