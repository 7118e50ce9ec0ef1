// Preloaded into an example: how well passwords are hashed is not what is asked there, and would be most of the time.
import crypto from 'node:crypto'
import { syncBuiltinESMExports } from 'node:module'

const { scrypt, scryptSync } = crypto
Object.assign(crypto, {
  /** @param {[any, any, any, any, any]} all */
  scrypt: (...[password, salt, length, , done]) => scrypt(password, salt, length, { N: 2 }, done),
  /** @param {[any, any, any]} all */
  scryptSync: (...[password, salt, length]) => scryptSync(password, salt, length, { N: 2 }),
})
syncBuiltinESMExports()
