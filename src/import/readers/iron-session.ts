import { createDecipheriv, createHmac, pbkdf2Sync } from 'node:crypto'
import type { OptionsOf } from '../../text/check-options.ts'
import { isObject, type OldCookie, type OldSessions } from '../from.ts'
import { aCookie, checkReader } from './callback-store.ts'
import { decoded, matching } from './signature.ts'

/** The passwords and name of iron-session's cookies: the options that the old service gives `getIronSession`. */
export interface FromIronSessionOptions {
  /** Its `password`: one, or several by their IDs. */
  password: string | Readonly<Record<string, string>>
  /** Its `cookieName`, with `path` and `domain` of its `cookieOptions` if it sets them. */
  cookie: string | OldCookie
}

// iron-session takes no shorter ones.
const isPassword = (value: unknown) => typeof value === 'string' && value.length >= 32
// Told without the value, which is a secret.
const aPassword = (value: unknown) => {
  const all = isObject(value) ? Object.values(value) : [value]
  if (all.length === 0 || !all.every(isPassword))
    throw new TypeError(
      "fromIronSession: password: expected the old service's password, text of at least 32 characters, or an object of such texts by their IDs",
    )
}

const OPTIONS: OptionsOf<FromIronSessionOptions> = {
  where: 'fromIronSession',
  required: ['password', 'cookie'],
  hints: { cookieName: 'it is called cookie', ttl: 'each seal says when it expires' },
  rules: { password: aPassword, cookie: aCookie },
}

const keyOf = (password: string, salt: string) => pbkdf2Sync(password, salt, 1, 32, 'sha1')

/**
 * The sessions of iron-session 8 and 9, for `sessionImporter`. The cookie is the whole session, encrypted and signed; one
 * that none of the passwords sealed is refused. The session does not say how old it is.
 * @throws TypeError that names the option
 */
export function fromIronSession<T = Record<string, unknown>>(options: FromIronSessionOptions): OldSessions<T> {
  checkReader(OPTIONS, options)
  const { password, cookie } = options
  const passwords = new Map(Object.entries(typeof password === 'string' ? { 1: password } : password))
  return {
    cookie,
    isChunked: true,
    parse(value) {
      // The version behind the tilde is not signed.
      const [seal = ''] = (decoded(value) ?? '').split('~')
      const parts = seal.split('*')
      const [format, passwordId = '', , , , , salt = '', mac = ''] = parts
      const secret = passwords.get(passwordId)
      if (format !== 'Fe26.2' || parts.length !== 8 || secret === undefined) return null
      const signed = parts.slice(0, 6).join('*')
      const expected = createHmac('sha256', keyOf(secret, salt)).update(signed).digest('base64url')
      return matching(mac, [expected]) === undefined ? null : { id: seal, secret: seal }
    },
    read(seal) {
      const [, passwordId = '', salt = '', iv = '', encrypted = '', expires = ''] = seal.split('*')
      const key = keyOf(passwords.get(passwordId)!, salt)
      const decipher = createDecipheriv('aes-256-cbc', key, Buffer.from(iv, 'base64url'))
      const text = Buffer.concat([decipher.update(encrypted, 'base64url'), decipher.final()]).toString()
      return { data: JSON.parse(text) as T, expiresAt: expires === '' ? null : Number(expires) }
    },
  }
}
