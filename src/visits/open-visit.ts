import { forVisits } from '../manager/for-visits.ts'
import type { SessionManager } from '../manager/manager.ts'
import type { UserIds } from '../session/user-id.ts'
import { checkSessions, checkVisitRequest } from './check-arguments.ts'
import type { Advice } from './errors.ts'
import { setUp, type VisitOptions, type VisitsSetup } from './setup.ts'
import type { Visit as PublicVisit, VisitRequest } from './types.ts'
import { Visit } from './visit.ts'

const SAID_IN_REQUEST = '`secure` of the request says whether it came over HTTPS'
const ADVICE: Advice = {
  where: 'openVisit',
  lacks: { trustedProxies: SAID_IN_REQUEST, isSecure: SAID_IN_REQUEST },
  insecure: 'say so in `secure` of the request given to openVisit if it did',
  send: 'after the last method copy `visit.headers` into the response',
}

const setups = new WeakMap<object, VisitsSetup>()
const NO_OPTIONS: VisitOptions = {}

/** The visit of a request, for a server or a cookie jar of your own. Options are checked once as long as they are the same object. */
export function openVisit<Data extends object, Ids extends UserIds, Input extends object>(
  sessions: SessionManager<Data, Ids, Input>,
  request: VisitRequest,
  options: VisitOptions = NO_OPTIONS,
): PublicVisit<Data, Ids, Input> {
  checkSessions('openVisit', sessions)
  checkVisitRequest(request)
  let setup = setups.get(options)
  if (setup === undefined) {
    setup = setUp(options, ADVICE)
    setups.set(options, setup)
  }
  return new Visit(sessions, forVisits<Data, Ids>(sessions), request, setup)
}
