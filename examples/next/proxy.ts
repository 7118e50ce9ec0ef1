import { SessionError } from 'coatcheck'
import { withCookies } from 'coatcheck/custom-server'
import { type NextRequest, NextResponse } from 'next/server'
import { visits } from './lib/sessions'

export const config = { matcher: '/' } // your pages; route handlers and actions have visits of their own

/** A page cannot set cookies: what renews a session or brings a remembered user back happens here, before it. */
export function proxy(request: NextRequest) {
  if (request.method !== 'GET') return NextResponse.next()
  return visits
    .handle(request, async visit => {
      await visit.get()
      const headers = new Headers(request.headers)
      headers.set('Cookie', withCookies(headers.get('cookie'), visit.cookies))
      return NextResponse.next({ request: { headers } })
    })
    .catch(error => {
      if (error instanceof SessionError) return error.getResponse()
      throw error
    })
}
