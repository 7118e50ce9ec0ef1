import { contextOf } from '../manager/context-of.ts'
import type { SessionManager } from '../manager/manager.ts'
import { Arrival } from './arrival.ts'
import type { DeviceAnswer } from './devices.ts'
import type { VisitsSetup } from './setup.ts'
import type { VisitRequest } from './visit.ts'

/** A request of whichever server. What costs something is asked only of the requests that browsers register or refresh by. */
interface Asked {
  readonly method: string | undefined
  path(): string
  header(name: 'secure-session-response' | 'sec-secure-session-id'): string | null
  asVisit(): VisitRequest
}

/**
 * The answer to a browser that registers or refreshes; `null` for any other request, and where the visits object has no
 * `deviceBound`. No visit, and no guard against pages of other origins: browsers send neither Origin nor Sec-Fetch-Site
 * here, and what they sign cannot be signed by a page.
 */
export async function answerDevice(
  // biome-ignore lint/suspicious/noExplicitAny: of whichever data and user IDs
  sessions: SessionManager<any, any, any>,
  setup: VisitsSetup,
  asked: Asked,
): Promise<DeviceAnswer | null> {
  const { devices } = setup
  if (devices === null || asked.method !== 'POST') return null
  const path = asked.path()
  if (!devices.answersAt(path)) return null
  const request = asked.asVisit()
  const arrival = new Arrival(contextOf(sessions), setup, request)
  const { id, isAmbiguous } = arrival
  return devices.answer(sessions, {
    path,
    id,
    isDoubtful: isAmbiguous || (id === null && arrival.ids.length > 0),
    cookie: request.cookie,
    proof: asked.header('secure-session-response'),
    sessionId: asked.header('sec-secure-session-id'),
  })
}
