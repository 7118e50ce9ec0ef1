import type { Handle, HandleServerError } from '@sveltejs/kit'
import { SessionError } from 'coatcheck'
import { visits } from '$lib/server/sessions'

export const handle: Handle = ({ event, resolve }) =>
  visits.handle(event.request, async visit => {
    event.locals.visit = visit
    const response = await resolve(event)
    // Of a client-side navigation SvelteKit reads the error in the answer, and only if that is a success.
    const { status } = (event.isDataRequest ? null : event.locals.refusal) ?? response
    return status === response.status ? response : new Response(response.body, { status, headers: response.headers })
  })

/** SvelteKit answers 500 to errors that are not its own: `handle` gives ours their status. */
export const handleError: HandleServerError = ({ error, event, message }) => {
  if (!(error instanceof SessionError)) return console.error(error)
  event.locals.refusal = error
  if (error.expose) return { message: error.message, code: error.code }
  console.error(error) // the details are for the log alone
  return { message, code: error.code }
}
