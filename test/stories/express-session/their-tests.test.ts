// The public tests of express-session (test/session.js of version 1.19), block by block: which test here asks the same of
// the bridge, or why none does.
import { readdirSync, readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'

/** Their block, as its describe and its tests are named; the tests of this folder that ask the same. */
const RUN: [theirs: string, ours: string[]][] = [
  ['should do nothing if req.session exists', ['is left alone where the application has put one there']],
  [
    'should create a new session',
    ['gets a session with the first value, by one write, and finds the value at the next request'],
  ],
  [
    'should load session from cookie sid',
    ['gets a session with the first value, by one write, and finds the value at the next request'],
  ],
  ['should pass session fetch error', ['is an error for next, and no session that looks empty']],
  ['should create multiple sessions', ['gives each browser a session of its own']],
  ['should handle empty req.url', ['reads a session whatever the address of the request is']],
  ['should handle multiple res.end calls', ['end twice']],
  ['should handle res.end(null) calls', ['end(null) after write']],
  ['should handle reserved properties in storage', ['shows no data under the names of its members, and keeps it']],
  ['should only have session data enumerable (and cookie)', ['has the data for its own keys, and nothing else']],
  ['should not save with bogus req.sessionID', ['refuses an ID from outside']],
  [
    'should update cookie expiration when slow write',
    ['may be called, and change nothing: a session in use lives on by itself'],
  ],
  [
    'when response ended: should have saved session, with empty response, multi-write, non-chunked response',
    ['arrives whole, with the cookie, and after the write: %s'],
  ],
  [
    'when response ended: with updated cookie expiration',
    ['may be called, and change nothing: a session in use lives on by itself'],
  ],
  ['when sid not in store', ['with an ID that it made up gets another one']],
  ['when session expired in store', ['finds nothing after it expired, and gets another ID with the next value']],
  ['name option', ['has the name and the attributes that the edge is given']],
  [
    'rolling option',
    ['may be called, and change nothing: a session in use lives on by itself', 'comes once where it does not slide'],
  ],
  ['resave option: when false', ['is not written where nothing changed, nor where a value was set to what it was']],
  ['resave option: should still save modified session', ['notices a change deep inside of a value']],
  ['resave option: should pass session touch error', ['goes on where a touch fails']],
  [
    'saveUninitialized option: should prevent save of uninitialized session, should still save modified session',
    [
      'gets no session, no cookie and no store call for looking',
      'gets a session with the first value, by one write, and finds the value at the next request',
    ],
  ],
  [
    'saveUninitialized option: should pass session save error',
    ['is told once: the answer of an error handler that uses req.session too goes out'],
  ],
  [
    'unset option: should allow destroy on req.session = null',
    ['ends the session, and the response waits for that: %s'],
  ],
  [
    'unset option: should not set cookie if initial session destroyed',
    ['leaves a visitor without a session where it is set to null'],
  ],
  ['unset option: should pass session destroy error', ['is 503 where the store does not answer: the cookie stays']],
  [
    'res.end patch: should correctly handle res.end/res.write patched prior, after',
    ['works beside what other middleware put around writeHead, before it and after it'],
  ],
  ['res.end patch: should error when res.end is called twice', ['end twice']],
  ['req.session: should persist', ['can be asked for by the CommonJS code that it is for, in sloppy mode']],
  ['req.session: should only set-cookie when modified', ['comes once where it does not slide']],
  ['req.session: should not have enumerable methods', ['has the data for its own keys, and nothing else']],
  ['.destroy()', ['ends the session: req.session is undefined, the cookie goes, and the ID is dead']],
  ['.regenerate()', ['ends the session before its callback runs; the new one has no data, and an ID when it is saved']],
  ['.reload(): should reload session from store', ['reads what other requests wrote, into the same object']],
  ['.reload(): should error is session missing', ['tells where the session has ended, or never was']],
  [
    '.reload(): should not override an overridden `reload` in case of errors',
    ['keeps a method that middleware put in place of ours'],
  ],
  ['.save(): should save session to store', ['writes at once, and the end of the response writes nothing more']],
  [
    '.save(): should prevent end-of-request save, on reloaded session, when saveUninitialized is false',
    ['twice writes once, one after the other or in parallel'],
  ],
  ['.touch()', ['may be called, and change nothing: a session in use lives on by itself']],
  [
    '.cookie: should serialize as parameters, should override defaults',
    ['has the name and the attributes that the edge is given'],
  ],
  [
    '.cookie: should default to a browser-session length cookie, should Set-Cookie only once',
    ['has no maxAge where the cookie ends with the browser', 'comes once where it does not slide'],
  ],
  ['.cookie: should preserve cookies set before and in writeHead', ['writeHead with a reason and cookies of its own']],
  ['.cookie: .originalMaxAge', ['says how long the cookie lasts, and what it is like']],
  ['.cookie: .secure', ['is 403 for a login that came without TLS, and no cookie']],
  ['.cookie: .partitioned', ['has the name and the attributes that the edge is given']],
  ['.cookie: .maxAge, .expires', ['refuses what it could not keep, and says what to do: %s']],
  ['synchronous store', ['works over a store that answers at once, as the memory store does']],
]

/** Their block, and why there is nothing to ask of the bridge. */
const NOT_RUN: [theirs: string, reason: string][] = [
  [
    'should export constructors',
    'there are none: a store of coatcheck, a manager and a middleware, and no class to extend',
  ],
  [
    'should error without secret, should get secret from req.secret, secret option',
    'nothing is signed: the ID is random and looked up',
  ],
  [
    'should treat ENOENT session fetch error as not found',
    'stores answer that a session is absent by a value; an error is an outage',
  ],
  ['when sid not properly signed, cookieParser()', 'nothing is signed, and the cookie is read from the header alone'],
  ['when session without cookie property in store', 'the cookie is not stored'],
  ['proxy option', 'trustedProxies and isSecure of the edge, which test/api/visits/https.test.ts asks'],
  [
    'cookie option: when "path" set to "/foo/bar", when mounted',
    'the path limits the cookie; the middleware is mounted where it is to run',
  ],
  [
    'cookie option: when "secure" set to "auto", when "sameSite" set to "auto", when "cookie" is a function',
    'one cookie for all requests',
  ],
  ['genid option', 'an ID is 240 random bits, and never taken from outside'],
  ['key option', 'a former name of the option name'],
  [
    'resave option: when true, should default to true, should detect a "cookie" property as modified',
    'what did not change is not written, and the cookie is not stored',
  ],
  [
    'saveUninitialized option: should default to true, should force save of uninitialized session, should prevent uninitialized session from being touched',
    'what is empty is not stored',
  ],
  ['unset option: should reject unknown values, should default to keep', 'req.session = null always ends the session'],
  [
    'req.session: should not be set if store is disconnected, should be set when store reconnects',
    'an outage is an error for next: an empty session would look like a logout',
  ],
  ['.cookie: should forward errors setting cookie', 'attributes are checked when the middleware is made'],
]

const folder = new URL('.', import.meta.url)
const SOURCES = readdirSync(folder)
  .filter(name => name.endsWith('.test.ts') && name !== 'their-tests.test.ts')
  .map(name => readFileSync(new URL(name, folder), 'utf8'))
  .join('\n')

describe('the public tests of express-session', () => {
  it.each(RUN)('are asked of the bridge: %s', (_, ours) => {
    for (const name of ours) expect(SOURCES.includes(`'${name}'`), name).toBe(true)
  })

  it.each(NOT_RUN)('are not asked for a reason: %s', (_, reason) => {
    expect(reason.length).toBeGreaterThan(20)
  })
})
