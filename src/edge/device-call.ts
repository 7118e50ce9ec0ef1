import { contextOf } from '../manager/context-of.ts'
import type { SessionManager } from '../manager/manager.ts'
import { Arrival } from './arrival.ts'
import type { DeviceAnswer, DeviceCall, Devices } from './devices.ts'
import type { EdgeSetup } from './setup.ts'
import type { VisitRequest } from './visit.ts'

/** What an edge reads from a request to one of the two paths. */
interface Read extends Omit<DeviceCall, 'id' | 'isDoubtful' | 'cookie'> {
  readonly request: VisitRequest
}

/**
 * The answer to a browser that registers or refreshes. No visit, and no guard against pages of other origins: browsers send
 * neither Origin nor Sec-Fetch-Site here, and what they sign cannot be signed by a page.
 */
export function answerDevice(
  // biome-ignore lint/suspicious/noExplicitAny: of whichever data and user IDs
  sessions: SessionManager<any, any, any>,
  setup: EdgeSetup,
  devices: Devices,
  { request, ...call }: Read,
): Promise<DeviceAnswer> {
  const arrival = new Arrival(contextOf(sessions), setup, request)
  const { id, isAmbiguous } = arrival
  const isDoubtful = isAmbiguous || (id === null && arrival.ids.length > 0)
  return devices.answer(sessions, { ...call, id, isDoubtful, cookie: request.cookie })
}
