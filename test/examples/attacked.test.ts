// Each program that a page or an example shows, asked as an attacker would ask what was copied from it. A new one is asked
// without being listed. The recipes for frameworks, whose packages are not here, are asked in their walks.
import { execFileSync } from 'node:child_process'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { describe, expect, it } from 'vitest'
import { isInstalled } from '../support/installed.ts'
import { modulesOf } from '../support/page-code.ts'
import { PAGES, read, root } from '../support/pages.ts'
import { attack, type Program, routesOf, useAttacks } from './attacks.ts'

/** Why an example is not asked here. */
const EXCEPT = new Map([
  ['examples/https.mjs', 'needs a certificate, and is its routes in examples/serve.mjs: test/examples/short.test.ts'],
  ['examples/connect/moving.mjs', 'ends by itself'],
])

const isServer = (code: string) =>
  /\bcreateServer\([^)\s]|\.listen\(|^serve\($/m.test(code) && !code.includes('node:test')
const isOurs = ({ code }: { code: string }) =>
  isServer(code) && code.includes("'coatcheck'") && isInstalled(code) && !/from 'pg'/.test(code)

const SHOWN: Program[] = PAGES.flatMap(modulesOf)
  .filter(({ markers }) => !['file', 'from', 'compile only', 'not run'].some(marker => markers.has(marker)))
  .filter(isOurs)
  .map(({ place, code, markers }) => {
    // What tries a block stands after it; a program that another one exports is not listening yet.
    const [before = '', after = ''] = (markers.get('tried by') ? read(markers.get('tried by')!) : '').split(
      '/* the block */',
    )
    const own = code.replace(after, '')
    expect(own).toContain(before)
    const listening = own.includes('.listen(') ? own : `${own}\nserver.listen(3000)\n`
    return { name: place, code: listening, routes: routesOf(own) }
  })
/** The routes of the service, which a table of its own has. */
const SERVICE =
  "'GET /' 'POST /login' 'GET /profile' 'POST /logout' 'POST /password' 'GET /session' 'POST /session/rotate' 'DELETE /sessions/x'"

const list = ['-c', 'safe.directory=*', 'ls-files', '-co', '--exclude-standard', 'examples/*.mjs']
const EXAMPLES: Program[] = execFileSync('git', list, { cwd: root, encoding: 'utf8' })
  .trim()
  .split('\n')
  .filter(name => !EXCEPT.has(name) && !/\.test\.mjs$|\/serve\.mjs$/.test(name))
  .map(name => ({ name, code: read(name) }))
  .filter(isOurs)
  // Those in a folder have a package.json, and take the package from where they are installed.
  .map(({ name, code }) => ({
    name,
    ...(name.split('/').length > 2 && { code: moved(name, code) }),
    routes: routesOf(name === 'examples/server.mjs' ? SERVICE : code),
  }))
/** An example that runs in another folder. */
function moved(name: string, code: string): string {
  const base = pathToFileURL(join(root, name))
  return code.replaceAll(/from '(\.[^']+)'/g, (_, path: string) => `from '${new URL(path, base)}'`)
}

useAttacks()

describe('a program that was copied answers a stranger without harm', () => {
  it('is found in pages and examples', () => {
    expect(SHOWN.length).toBeGreaterThan(3)
    expect(EXAMPLES.map(({ name }) => name)).toContain('examples/login.mjs')
  })

  it.each([...SHOWN, ...EXAMPLES].map(program => [program.name, program] as const))(
    '%s',
    (_, program) => attack(program),
    120_000,
  )
})
