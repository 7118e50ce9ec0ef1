// @ts-check
// `npm run proof -- foreign`: the tests that express-session and Passport have for themselves, with our store in place of the
// MemoryStore of express-session. npm has no tests of them: they come from GitHub, at the tag of the version that is
// installed, or from checkouts: `--from DIR` has `session` and `passport`.
import { execFileSync, spawnSync } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { build } from '../../support/scripts/build.mjs'
import { install } from '../../support/scripts/install.mjs'

/** Tests of express-session, seven in all, that ask what our store refuses or promises otherwise. docs/connect.md leads here. */
const NOT_OURS = [
  // Three: a `maxAge` of 5 ms, which counts in whole seconds here.
  'when session expired in store',
  // An error for a session without a cookie, which gets that of the middleware here.
  'when session without cookie property in store should pass error from inflate',
  // IDs of 1 to 5 characters, which are refused.
  'genid option should allow custom function',
  'genid option should encode unsafe chars',
  'genid option should provide req argument',
]

const { values } = parseArgs({ options: { from: { type: 'string' } } })
const here = fileURLToPath(new URL('.', import.meta.url))
const modules = join(here, 'node_modules')
const mocha = join(modules, 'mocha/bin/mocha.js')
if (!install('test/proof/foreign')) process.exit(1)
await build()
const folder = mkdtempSync(join(tmpdir(), 'coatcheck-foreign-'))

/** @param {string} name @param {string} repository @param {string} tag @returns {string} a folder with the tests in it */
function testsOf(name, repository, tag) {
  const checkout = values.from === undefined ? join(folder, `${name}-checkout`) : join(values.from, name)
  const clone = ['clone', '--quiet', '--depth=1', `--branch=${tag}`, `https://github.com/${repository}`, checkout]
  if (values.from === undefined) execFileSync('git', clone, { stdio: 'inherit' })
  const place = join(folder, name)
  mkdirSync(place)
  cpSync(join(checkout, 'test'), join(place, 'test'), { recursive: true })
  symlinkSync(modules, join(place, 'node_modules'))
  return place
}

/** @param {string} cwd @param {readonly string[]} args */
const isPassed = (cwd, ...args) =>
  spawnSync(process.execPath, [mocha, '--exit', '--reporter=dot', ...args], { cwd, stdio: 'inherit' }).status === 0

try {
  const session = testsOf('session', 'expressjs/session', 'v1.19.0')
  // The tests ask for `../`: the package as it is on npm.
  writeFileSync(join(session, 'index.js'), "module.exports = require('express-session')")
  mkdirSync(join(session, 'session'))
  for (const file of readdirSync(join(modules, 'express-session/session')))
    writeFileSync(join(session, 'session', file), `module.exports = require('express-session/session/${file}')`)
  const keys = ['-x509', '-nodes', '-newkey', 'rsa:2048', '-days', '2', '-subj', '/CN=express-session.local']
  const files = ['-keyout', 'test/fixtures/server.key', '-out', 'test/fixtures/server.crt']
  execFileSync('openssl', ['req', ...keys, ...files], { cwd: session, stdio: 'ignore' })

  const passport = testsOf('passport', 'jaredhanson/passport', 'v0.7.0')
  for (const name of ['lib', 'package.json']) symlinkSync(join(modules, 'passport', name), join(passport, name))

  const ours = ['--require', 'test/support/env', '--require', join(here, 'over-connect.cjs'), '--check-leaks']
  const isSession = isPassed(session, ...ours, '--invert', '--grep', NOT_OURS.join('|'), 'test/')
  const isPassport = isPassed(passport, '--require', 'test/bootstrap/node', 'test/**/*.test.js')
  process.exitCode = isSession && isPassport ? 0 : 1
} finally {
  rmSync(folder, { recursive: true, force: true })
}
