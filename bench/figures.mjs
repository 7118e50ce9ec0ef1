// @ts-check
// What docs/performance.md and the README show of one run of all stores.
import { writeFileSync } from 'node:fs'
import { loadavg } from 'node:os'
import { at, writeBlocks } from './blocks.mjs'
import { measure } from './measure/run.mjs'
import { OPERATIONS } from './operations.mjs'
import { TABLES } from './stores.mjs'
import { fixed, table, whole } from './table.mjs'

/** @typedef {import('./tables.mjs').Medians} Medians */

/** Like beside like, by block of the page: ours, and who stands beside it. @type {Record<string, [string, string[]]>} */
const GROUPS = {
  express: ['coatcheck in Express', ['express-session']],
  fastify: ['coatcheck in Fastify', ['@fastify/session']],
  alone: ['coatcheck', ['koa-session', 'better-auth', 'iron-session', 'JWT, jose']],
}
/** The bars of the chart. */
const CHART = ['by hand', 'coatcheck', 'Express alone', ...GROUPS.express, ...GROUPS.fastify].flat()
const TITLE = 'Processor time for a GET of a logged-in user, sessions in memory; a Map by hand on node:http is 1'

/** @param {Map<string, Medians>} all */
function rowsOf(all) {
  return [...all].flatMap(([store, medians]) =>
    Object.entries(OPERATIONS).flatMap(([name, { title }]) => {
      const of = (/** @type {string} */ label) => medians.get(label)?.get(name)
      return of('by hand') ? [{ where: `${TABLES[store]?.title}: ${title}`, of }] : []
    }),
  )
}

/** @param {{ ratio: number, low: number, high: number } | undefined} median */
const cell = median => (median ? `${fixed(median.ratio)} (${fixed(median.low)} to ${fixed(median.high)})` : '–')

/** @param {Medians} memory */
function drawChart(memory) {
  const bars = CHART.map(label => ({ label, ratio: Number(memory.get(label)?.get('profile')?.ratio) }))
  const [LEFT, WIDTH, BAR, STEP, GAP] = [200, 640, 20, 28, 16]
  const scale = (WIDTH - LEFT - 60) / Math.max(...bars.map(({ ratio }) => ratio))
  let y = 8
  const parts = []
  for (const { label, ratio } of bars) {
    const own = label.includes('coatcheck')
    if (label === 'Express alone' || label === 'coatcheck in Fastify') y += GAP
    parts.push(
      `<text x="${LEFT - 10}" y="${y + 15}" text-anchor="end"${own ? ' font-weight="600"' : ''}>${label}</text>`,
      `<rect x="${LEFT}" y="${y}" width="${fixed(ratio * scale, 1)}" height="${BAR}" rx="4" fill="${own ? '#a5475b' : '#b3a79c'}"/>`,
      `<text x="${fixed(LEFT + ratio * scale + 8, 1)}" y="${y + 15}">${fixed(ratio, 1)}</text>`,
    )
    y += STEP
  }
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${y}" width="${WIDTH}" role="img" aria-label="${TITLE}" font-family="system-ui, sans-serif" font-size="14">
<title>${TITLE}</title>
<style>text { fill: #241f1c } @media (prefers-color-scheme: dark) { text { fill: #efe9e2 } }</style>
${parts.join('\n')}
</svg>
`
}

/** @param {Map<string, Medians>} all @param {readonly string[]} heading */
export async function writePage(all, heading) {
  const absent = Object.keys(TABLES).filter(name => !all.has(name))
  if (absent.length > 0) throw new Error(`there is no table of ${absent.join(', ')}: nothing was written`)
  const rows = rowsOf(all)
  const rounds = [...all.values()].map(medians => Number(medians.get('by hand')?.get('profile')?.rounds))
  const isShort = Math.min(...rounds) < 5
  /** @type {Record<string, string>} */
  const blocks = {
    run: `${heading.slice(0, 2).join(' ')} When it ended there were ${fixed(Number(loadavg()[0]), 1)}, its own among them. ${heading[2]}${isShort ? ' **Few rounds: these figures show that the command works, and little else.**' : ` ${Math.min(...rounds)} to ${Math.max(...rounds)} rounds.`}`,
  }
  /** @type {string[][]} */
  const cheaper = []
  for (const [name, [ours, peers]] of Object.entries(GROUPS)) {
    const shown = rows.filter(({ of }) => of(ours))
    blocks[name] = table(
      ['sessions in: request', ours, ...peers],
      shown.map(({ where, of }) => [where, cell(of(ours)), ...peers.map(peer => cell(of(peer)))]),
    )
    for (const { where, of } of shown)
      for (const peer of peers) {
        const [own, theirs] = [of(ours), of(peer)]
        if (own && theirs && theirs.ratio < own.ratio)
          cheaper.push([where, `${ours} ${cell(own)}`, `${peer} ${cell(theirs)}`])
      }
  }
  const bytes = async (/** @type {string} */ who) =>
    `${who} ${whole((await measure('footprint.mjs', who, '1000000')).bytes)}`
  cheaper.unshift([
    'bytes for a session, of 1,000,000 in memory',
    await bytes('coatcheck'),
    await bytes('express-session'),
  ])
  blocks.cheaper = table(['sessions in: request', 'ours', 'cheaper'], cheaper, 3)
  const memory = /** @type {Medians} */ (all.get('memory'))
  const [express, own, peer] = ['Express alone', ...GROUPS.express]
    .flat()
    .map(label => fixed(Number(memory.get(label)?.get('profile')?.ratio), 1))
  blocks.speed = `**Speed${isShort ? ' (few rounds on a busy machine, to be measured again)' : ''}:** processor time for a GET of a logged-in user, sessions in memory, a \`Map\` by hand on \`node:http\` = 1: Express alone ${express}, coatcheck in Express ${own}, express-session in Express ${peer} ([Performance](docs/performance.md), also where others are cheaper; \`npm run bench -- --quick\` measures yours in two minutes).`
  writeFileSync(at('docs/pictures/performance.svg'), drawChart(memory))
  writeBlocks('bench', ['docs/performance.md', 'README.md'], blocks)
}
