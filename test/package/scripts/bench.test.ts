// What the benchmarks measure goes on to work: each server on memory, started once, answers as the others do.
import { execFileSync, spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { describe, expect, it } from 'vitest'

const bench = (file: string) => import(new URL(`../../../bench/${file}`, import.meta.url).href)
const { TABLES } = await bench('stores.mjs')
const { check } = await bench('contest.mjs')
const { Running } = await bench('rounds.mjs')
const { Load } = await bench('load.mjs')
const isBuilt = existsSync(new URL('../../../dist/index.js', import.meta.url))

interface Row {
  readonly label: string
  readonly file: string
}

describe('a server of the benchmarks', () => {
  it.for(TABLES.memory.rows as Row[])('$label logs in, writes, and logs out', async (row, { skip }) => {
    skip(row.label.includes('coatcheck') && !isBuilt, 'dist is not built')
    const server = new Running({ name: row.label, file: row.file })
    try {
      const port = await server.ask().catch((error: Error) => {
        skip(/^Cannot find package/.test(error.message), error.message)
        throw error
      })
      const load = new Load(port, 2)
      await expect(check(row, load)).resolves.toBeUndefined()
      load.close()
    } finally {
      server.stop()
    }
  })
})

describe('work on one processor', () => {
  // In a process of its own: the tests beside this one keep their processors.
  const run = (code: string, env: NodeJS.ProcessEnv = process.env) =>
    execFileSync(
      process.execPath,
      ['--input-type=module', '-e', `import { onOneProcessor } from './bench/processors.mjs'\n${code}`],
      { encoding: 'utf8', env },
    ).trim()
  const ALLOWED = `import { readFileSync } from 'node:fs'
    import { spawn } from 'node:child_process'
    const child = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1e6)'])
    const of = pid => /^Cpus_allowed_list:\\s*(\\S+)/m.exec(readFileSync('/proc/' + pid + '/status', 'utf8'))[1]
    const both = () => [of('self'), of(child.pid)]`

  it.runIf(process.platform === 'linux')(
    'moves what was started before, and moves all back, also after a failure',
    () => {
      const said = run(`${ALLOWED}
      const before = both()
      let during
      const can = await onOneProcessor(async () => { during = both() })
      const after = both()
      await onOneProcessor(async () => { throw new Error('work') }).catch(error => after.push(error.message, ...both()))
      console.log(JSON.stringify({ can, before, during, after }))
      child.kill()`)
      const { can, before, during, after } = JSON.parse(said)
      expect(can).toBe(true)
      expect(during[0]).toMatch(/^\d+$/)
      expect(during[1]).toBe(during[0])
      expect(after).toEqual([...before, 'work', ...before])
    },
  )

  it('is done all the same where the system cannot', () => {
    const said = run(`console.log(await onOneProcessor(async () => console.log('done')))`, { PATH: '' })
    expect(said).toBe('done\nfalse')
  })
})

it.each([
  [['--quick', 'details'], /details takes no --quick/],
  [['sweep', '--quick'], /sweep takes no --quick/],
  [['redis', '--write'], /redis takes no --write/],
  [['own', 'details'], /own takes stores/],
  [['own', 'redis', '--quick'], /own takes no --quick/],
  [['compare', 'redis'], /compare stands alone/],
  [['--quick', '--write', 'compare'], /a quick comparison lacks rows/],
  [['memmory'], /unknown: memmory/],
  [['--fast'], /--fast/],
])('npm run bench -- %j says what is wrong, and measures nothing', (args, message) => {
  const { status, stdout, stderr } = spawnSync(process.execPath, ['bench/bench.mjs', ...args], {
    encoding: 'utf8',
  })
  expect([status, stdout]).toEqual([2, ''])
  expect(stderr).toMatch(message)
  expect(stderr).toContain('Usage: npm run bench')
})
