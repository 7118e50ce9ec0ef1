import type { SessionManager } from '../manager/manager.ts'
import type { UserIds } from '../session/user-id.ts'
import { checkSessions, checkVisitRequest } from './check-arguments.ts'
import { RequestVisit } from './request-visit.ts'
import { setUpOnce, type VisitOptions } from './setup.ts'
import type { Visit, VisitRequest } from './visit.ts'

/** What a visits object is made of: write one for any server or cookie jar. */
export function openVisit<D extends object, I extends UserIds, In extends object>(
  sessions: SessionManager<D, I, In>,
  request: VisitRequest,
  options?: VisitOptions,
): Visit<D, I, In> {
  checkSessions('openVisit', sessions)
  checkVisitRequest(request)
  return new RequestVisit(sessions, request, setUpOnce(options))
}
