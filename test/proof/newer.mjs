// @ts-check
// `npm run proof -- newer [valkey] [redis]`: the suites of the Redis store on the servers of a newer Debian. They are unpacked
// into a cache and run with their own C library; nothing is installed. It needs apt-get, dpkg and Debian's keys.
import { spawnSync } from 'node:child_process'
import { chmodSync, existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { root, vitest } from '../support/scripts/vitest.mjs'

const RELEASE = 'trixie'
/** Which package brings it, and the program that takes the place of redis-server. */
const SERVERS = {
  valkey: { package: 'valkey-server', program: 'valkey-server' },
  redis: { package: 'redis-server', program: 'redis-server' },
}
const SUITES = ['test/contract', 'test/redis/outage.test.ts', 'test/redis/failover.test.ts']

const names = /** @type {(keyof typeof SERVERS)[]} */ (
  process.argv.slice(2).filter(name => Object.hasOwn(SERVERS, name))
)
const others = process.argv.slice(2).filter(name => !Object.hasOwn(SERVERS, name))
const unknown = others.filter(name => !existsSync(join(root, name)))
if (unknown.length > 0) {
  console.error(
    `unknown: ${unknown.join(', ')}\nusage: npm run proof -- newer [${Object.keys(SERVERS).join('|')}] [test files]`,
  )
  process.exit(2)
}
const wanted = names.length > 0 ? names : /** @type {(keyof typeof SERVERS)[]} */ (Object.keys(SERVERS))

const cache = join(root, 'node_modules/.cache/coatcheck-newer')
const system = join(cache, RELEASE)
const archives = join(cache, 'archives')
const settings = join(cache, 'apt.conf')

/** @param {string} command @param {string[]} args */
function run(command, args) {
  const { status, error } = spawnSync(command, args, {
    stdio: ['ignore', 'ignore', 'inherit'],
    env: { ...process.env, APT_CONFIG: settings, DEBIAN_FRONTEND: 'noninteractive' },
  })
  if (status === 0) return
  console.error(`${command} ${args.join(' ')} failed${error ? `: ${error.message}` : ` with ${status}`}`)
  process.exit(1)
}

const loader = join(system, 'usr/lib64/ld-linux-x86-64.so.2')
if (!wanted.every(name => existsSync(join(system, 'usr/bin', SERVERS[name].program)))) {
  for (const folder of [system, join(cache, 'lists/partial'), join(archives, 'partial')])
    mkdirSync(folder, { recursive: true })
  const keys = '/usr/share/keyrings/debian-archive-keyring.gpg'
  writeFileSync(join(cache, 'sources.list'), `deb [signed-by=${keys}] http://deb.debian.org/debian ${RELEASE} main\n`)
  writeFileSync(
    settings,
    `Dir::Etc::sourcelist "${cache}/sources.list";
Dir::Etc::sourceparts "-";
Dir::State::lists "${cache}/lists";
Dir::State::status "/dev/null";
Dir::Cache "${cache}";
Acquire::Languages "none";
APT::Sandbox::User "";
Debug::NoLocking "1";
`,
  )
  run('apt-get', ['update'])
  const packages = Object.values(SERVERS).map(server => server.package)
  run('apt-get', ['install', '-y', '--download-only', '--no-install-recommends', ...packages])
  for (const file of readdirSync(archives).filter(name => name.endsWith('.deb')))
    run('dpkg', ['-x', join(archives, file), system])
}

let failed = false
for (const name of wanted) {
  const programs = join(cache, name)
  mkdirSync(programs, { recursive: true })
  const wrapper = join(programs, 'redis-server')
  const libraries = join(system, 'usr/lib/x86_64-linux-gnu')
  const program = join(system, 'usr/bin', SERVERS[name].program)
  writeFileSync(wrapper, `#!/bin/sh\nexec '${loader}' --library-path '${libraries}' '${program}' "$@"\n`)
  chmodSync(wrapper, 0o755)
  const { stdout } = spawnSync(wrapper, ['--version'], { encoding: 'utf8' })
  console.log(`\n${name}: ${stdout.trim()}`)
  const env = { COATCHECK_PROGRAMS: programs, COATCHECK_ALL_ENGINES: '1' }
  failed = vitest([...(others.length > 0 ? others : SUITES), '--reporter=dot'], { env }) !== 0 || failed
}
process.exitCode = failed ? 1 : 0
