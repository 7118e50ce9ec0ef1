import { createStartHandler, defaultStreamHandler } from '@tanstack/react-start/server'
import { createServerEntry } from '@tanstack/react-start/server-entry'
import { SessionError } from 'coatcheck'
import { visits } from './sessions.server'

const start = createStartHandler(defaultStreamHandler)

/** The visit of each request, for server routes and server functions. What a server route throws of ours has its status. */
export default createServerEntry({
  fetch: request =>
    visits.handle(request, async visit => {
      try {
        return await start(request, { context: { visit } })
      } catch (error) {
        if (error instanceof Response) throw error
        const isOurs = error instanceof SessionError
        if (!isOurs || error.status >= 500) console.error(error) // the details are for the log alone
        return isOurs ? error.getResponse() : Response.json({ error: 'internal_error' }, { status: 500 })
      }
    }),
})
