// @ts-check
// What an application takes into its bundle, and what importing it costs.
import { execFileSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { gzipSync } from 'node:zlib'
import { build } from 'esbuild'
import { quantile } from './rounds.mjs'
import { fixed, table, whole } from './table.mjs'

const ROUNDS = 25
const dist = process.env.COATCHECK_DIST ?? fileURLToPath(new URL('../dist', import.meta.url))
const WHAT = {
  'manager, node, memory': ['index', 'node', 'stores/memory'],
  'manager, node, Redis': ['index', 'node', 'stores/redis'],
  'manager, node, PostgreSQL': ['index', 'node', 'stores/postgres'],
}

/** @param {readonly string[]} files */
async function bundleOf(files) {
  const { outputFiles } = await build({
    stdin: {
      contents: files
        .map((file, at) => `export * as part${at} from ${JSON.stringify(`${dist}/${file}.js`)}`)
        .join('\n'),
      resolveDir: dist,
    },
    bundle: true,
    minify: true,
    platform: 'node',
    format: 'esm',
    write: false,
  })
  return outputFiles[0]?.contents ?? new Uint8Array()
}

/** Milliseconds of processor time, inside a Node.js that has started. @param {readonly string[]} modules */
function importing(modules) {
  const code = `const before = process.cpuUsage()
    for (const name of ${JSON.stringify(modules)}) await import(name)
    const { user, system } = process.cpuUsage(before)
    console.log((user + system) / 1000)`
  return Number(execFileSync(process.execPath, ['--input-type=module', '-e', code], { encoding: 'utf8' }))
}

export async function benchPackage() {
  console.log('\n### In a bundle, all exports, minified by esbuild\n')
  const rows = []
  for (const [who, files] of Object.entries(WHAT)) {
    const bundle = await bundleOf(files)
    rows.push([who, whole(bundle.length), whole(gzipSync(bundle).length)])
  }
  console.log(table(['', 'bytes', 'with gzip'], rows))

  const own = WHAT['manager, node, memory'].map(file => `${dist}/${file}.js`)
  /** @type {Record<string, { modules: string[], took: number[] }>} */
  const imports = {
    'node:http': { modules: ['node:http'], took: [] },
    'node:http, then manager, node, memory': { modules: ['node:http', ...own], took: [] },
  }
  for (let round = 0; round < ROUNDS; round += 1)
    for (const { modules, took } of Object.values(imports)) took.push(importing(modules))
  console.log(`\n### Import, in ms of processor time: medians of ${ROUNDS} runs that take turns\n`)
  console.log(
    table(
      ['', 'ms', 'fastest'],
      Object.entries(imports).map(([who, { took }]) => [who, fixed(quantile(took)), fixed(quantile(took, 0))]),
    ),
  )
}
