// The cookies of koa-session and cookie-session: the value, and its signature in a second cookie.
import { isObject, nameOf, type OldCookie, type OldSessions } from '../from.ts'
import { matching, type Secret, secretsFrom, sign } from './signature.ts'

/** The signature that keygrip makes: HMAC-SHA1, in base64url. */
const signature = (text: string, key: Secret) => sign(text, key, 'sha1').replaceAll('/', '_').replaceAll('+', '-')

/** A cookie whose value is genuine if `NAME.sig` has its signature by one of the keys. */
export function keygripCookie(
  cookie: string | OldCookie,
  given: Secret | readonly Secret[],
): Required<Pick<OldSessions, 'cookie' | 'alsoClear' | 'parse'>> {
  const keys = secretsFrom('keys', given)
  const name = nameOf(cookie)
  const signatureName = `${name}.sig`
  return {
    cookie,
    alsoClear: [signatureName],
    parse(value, cookies) {
      const bare = value.startsWith('"') ? value.slice(1, -1) : value
      if (bare === '') return null
      const signatures = keys.map(key => signature(`${name}=${bare}`, key))
      const found = cookies(signatureName)
        .map(each => matching(each, signatures))
        .find(each => each !== undefined)
      return found === undefined ? null : { id: bare, secret: `${bare}.${found}` }
    },
  }
}

/** The data in such a cookie: JSON in base64. `null` if it is not an object. @throws SyntaxError if it is not JSON */
export function heldIn(value: string): Record<string, unknown> | null {
  const content = JSON.parse(Buffer.from(value, 'base64').toString('utf8'))
  return isObject(content) ? content : null
}
