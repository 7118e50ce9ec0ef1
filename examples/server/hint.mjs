// @ts-check
// Some clients keep the Secure cookie of a login over http, and do not send it back: nothing else would tell them why.

export const CLIENTS =
  'Python requests, http.cookiejar and wget send no Secure cookie over http: for them start with COOKIE_SECURE=off'

/**
 * The listener, which says once in the log if the request after a login, from the same address, brings no cookie of ours.
 * @param {import('node:http').RequestListener} listener
 * @returns {import('node:http').RequestListener}
 */
export function withHint(listener) {
  let isTold = false
  /** Of the last login, until its next request. @type {string | undefined} */
  let address
  return (request, response) => {
    const { remoteAddress } = request.socket
    if (address !== undefined && address === remoteAddress) {
      address = undefined
      if (!/\bsession_id=/.test(request.headers.cookie ?? '')) {
        isTold = true
        console.warn(`${remoteAddress} logged in, and its next request brought no cookie. ${CLIENTS}`)
      }
    }
    // Without TLS a login succeeds on loopback alone.
    if (!isTold && request.method === 'POST' && request.url === '/login')
      response.once('finish', () => {
        if (response.statusCode < 400) address = remoteAddress
      })
    listener(request, response)
  }
}
