import type { MiddlewareHandler } from 'astro'
import { SessionError } from 'coatcheck'
import { visits } from './lib/sessions'

/** The visit of each request. Astro answers 500 to what a page or an endpoint throws: not to a Response, nor to our errors. */
export const onRequest: MiddlewareHandler = ({ request, locals }, next) =>
  visits.handle(request, async visit => {
    locals.visit = visit
    try {
      return await next()
    } catch (error) {
      if (error instanceof Response) return error
      if (!(error instanceof SessionError)) throw error
      if (error.status >= 500) console.error(error) // the details are for the log alone
      return error.getResponse()
    }
  })
