// What is said of an option that other libraries have, or that belongs elsewhere: each hint names what to use instead.
import { expect, it } from 'vitest'
import { OPTION_HINTS } from '../../../src/text/option-hints.ts'

const INSTEAD: Record<string, string> = {
  'secret keys password signed algorithm': 'no secret is needed',
  'resave autoCommit beforeSave': 'update',
  'maxAge ttl expires expiration duration': 'idleTimeout and absoluteTimeout',
  saveUninitialized: 'first update or login',
  'rolling renew': 'lifetime',
  'genid idGenerator prefix cookiePrefix': '240 random bits',
  'proxy trustProxy': 'trustedProxies or isSecure',
  unset: 'logOut()',
  httpOnly: 'always is',
  'encode decode externalKey ContextStore': 'as it is, in one cookie',
  priority: 'browsers',
  overwrite: 'always replaced',
  'cookieName key': '{ cookie: { name } }',
  cookieOptions: 'called cookie',
  'touchAfter disableTouch resaveInterval': 'called touchInterval',
}

it.each(Object.entries(INSTEAD))('%s: it says what to use instead', (names, instead) => {
  for (const name of names.split(' ')) expect(OPTION_HINTS[name], name).toContain(instead)
})
