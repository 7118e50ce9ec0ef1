// @ts-check
// `npm run test:nodes [-- 22 24]`: the suite without servers, and the installed package, on each supported Node,
// fetched with npm into a cache. `-- --others`: on each but the one that runs this, which the whole suite has run on.
import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { install } from './install.mjs'
import { counts } from './results.mjs'
import { table } from './table.mjs'
import { root, vitest } from './vitest.mjs'

const MAJORS = ['20', '22', '24', '26']
/** The oldest release that `engines` of package.json allows: it lacks names that later ones export. */
const OLDEST = '20.0'
const LOAD_ALL = `for (const path of Object.keys(require('coatcheck/package.json').exports))
  if (path !== './package.json') { require('coatcheck' + path.slice(1)); import('coatcheck' + path.slice(1)) }`
// What needs no server, and the packed package as each Node.js and its package managers install and load it. The examples
// are walked through on one version: they stand on what the others test.
const PROJECTS = ['guarantees', 'libraries', 'package', 'process', 'rules'].flatMap(name => ['--project', name])
const EXCLUDED = [
  'test/{guarantees,contract}/{redis,postgres,mariadb,two,wrong}*',
  'test/package/!(installed).test.ts',
  'test/package/*/**',
  'test/{command,examples}/**',
  'test/libraries/{better-auth-stores,refresh,back-channel-logout}.test.ts',
  'test/libraries/import/services.test.ts',
  'test/support/**',
]

/** @param {string} major */
function fetchNode(major) {
  const name = `node-${process.platform === 'win32' ? 'win' : process.platform}-${process.arch}`
  const folder = join(root, 'node_modules/.cache/coatcheck-nodes', major)
  const binary = join(folder, 'node_modules', name, 'bin', process.platform === 'win32' ? 'node.exe' : 'node')
  if (!existsSync(binary)) {
    mkdirSync(folder, { recursive: true })
    writeFileSync(join(folder, 'package.json'), '{ "private": true }\n')
    const args = ['install', '--prefix', folder, '--no-save', '--no-audit', '--no-fund', `${name}@${major}`]
    spawnSync('npm', args, {
      cwd: folder,
      stdio: ['ignore', 'inherit', 'inherit'],
      shell: process.platform === 'win32',
    })
  }
  const { stdout, status } = spawnSync(binary, ['--version'], { encoding: 'utf8' })
  return status === 0 ? { binary, version: stdout.trim() } : null
}

const OTHERS = '--others'
const running = process.versions.node.split('.')[0]
const wanted = process.argv.slice(2)
const named = wanted.filter(each => each !== OTHERS)
const majors = (named.length > 0 ? named : MAJORS).filter(major => !wanted.includes(OTHERS) || major !== running)
if (!install('test/libraries', 'test/package/tools')) process.exit(1)
const results = process.env.COATCHECK_RESULTS ?? mkdtempSync(join(tmpdir(), 'coatcheck-nodes-'))
const rows = [['Node', 'version', 'passed', 'failed', 'skipped', 'verdict']]
let failed = false
for (const major of majors) {
  const node = fetchNode(major)
  if (node === null) {
    rows.push([major, '-', '-', '-', '-', 'could not be fetched'])
    failed = true
    continue
  }
  console.log(`\nNode ${node.version}`)
  const report = join(results, `node-${major}.json`)
  const args = ['--reporter=default', '--reporter=json', `--outputFile.json=${report}`]
  const env = major === MAJORS[0] ? {} : { COATCHECK_OTHER_NODE: '1' }
  const status = vitest([...PROJECTS, ...args], { node: node.binary, exclude: EXCLUDED, env })
  const sum = counts(report)
  const ok = status === 0 && sum.failed === 0 && sum.passed > 0
  failed ||= !ok
  rows.push([major, node.version, `${sum.passed}`, `${sum.failed}`, `${sum.skipped}`, ok ? 'ok' : 'FAILED'])
}
const oldest = fetchNode(OLDEST)
const loading = oldest && spawnSync(oldest.binary, ['--eval', LOAD_ALL], { cwd: root, encoding: 'utf8' })
if (loading?.status !== 0) {
  failed = true
  console.error(`Node ${OLDEST} does not load each subpath: ${loading?.stderr ?? 'it could not be fetched'}`)
} else console.log(`Node ${oldest?.version} loads each subpath, by import and by require.`)
if (process.env.COATCHECK_RESULTS === undefined) rmSync(results, { recursive: true })
console.log(`\n${table(rows)}\n`)
process.exitCode = failed ? 1 : 0
