// @ts-check
// What docs/performance.md and the README show of one run of all stores.
import { writeFileSync } from 'node:fs'
import { loadavg } from 'node:os'
import { at, writeBlocks } from './blocks.mjs'
import { OPERATIONS } from './operations.mjs'
import { TABLES } from './stores.mjs'
import { fixed, table, whole } from './table.mjs'

/** @typedef {import('./tables.mjs').Medians} Medians */

const EXPRESS = ['coatcheck in Express', 'express-session']
const FASTIFY = ['coatcheck in Fastify', '@fastify/session']
/** Like beside like: ours, and who stands beside it. */
const GROUPS = [EXPRESS, FASTIFY, ['coatcheck', 'koa-session', 'better-auth', 'iron-session', 'JWT, jose']]
/** The bars of the chart. */
const CHART = ['by hand', 'coatcheck', 'Express alone', ...EXPRESS, ...FASTIFY]
const TITLE = 'Processor time for a GET of a logged-in user, sessions in memory; a Map by hand on node:http is 1'

/** @typedef {{ ratio: number, low: number, high: number }} Figure */
/** @param {Map<string, Medians>} all */
function rowsOf(all) {
  return [...all].flatMap(([store, medians]) =>
    Object.entries(OPERATIONS).flatMap(([name, { title }]) => {
      const of = (/** @type {string} */ label) => medians.get(label)?.get(name)
      return of('by hand') ? [{ where: `${TABLES[store]?.title.split(' ')[0]}: ${title}`, of }] : []
    }),
  )
}

/** Bold is what is below ours. @param {Figure | undefined} own @param {Figure | undefined} figure */
const cell = (own, figure) =>
  figure === undefined ? '–' : own && figure.ratio < own.ratio ? `**${fixed(figure.ratio)}**` : fixed(figure.ratio)

/** The table, and how far the middle half of the rounds spreads. @param {readonly { where: string, of(label: string): Figure | undefined }[]} rows */
function figuresOf(rows) {
  const labels = GROUPS.flat()
  const spreads = rows
    .flatMap(({ of }) => labels.flatMap(label => of(label) ?? []))
    .map(({ ratio, low, high }) => Math.max(high - ratio, ratio - low) / ratio)
    .sort((a, b) => a - b)
  const percent = (/** @type {number} */ part) => whole(100 * Number(spreads[Math.floor(part * (spreads.length - 1))]))
  return {
    spread: `In the middle half of the rounds half of the figures vary by ${percent(0.5)} % at most, nine in ten by ${percent(0.9)} %: a smaller difference means nothing.`,
    table: table(
      ['sessions in: request', ...labels],
      rows.map(({ where, of }) => [
        where,
        ...GROUPS.flatMap(group => group.map(label => cell(of(String(group[0])), of(label)))),
      ]),
    ),
  }
}

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
  /** @type {Record<string, string>} */
  const blocks = {
    ...figuresOf(rows),
    run: `${heading.slice(0, 2).join(' ')} When it ended there were ${fixed(Number(loadavg()[0]), 1)}, its own among them. ${heading[2]} ${Math.min(...rounds)} to ${Math.max(...rounds)} rounds.`,
  }
  const memory = /** @type {Medians} */ (all.get('memory'))
  const [express, own, peer] = ['Express alone', ...EXPRESS].map(label =>
    fixed(Number(memory.get(label)?.get('profile')?.ratio), 1),
  )
  blocks.speed = `**Speed:** processor time for a GET of a logged-in user, sessions in memory, a \`Map\` by hand on \`node:http\` = 1: Express alone ${express}, coatcheck in Express ${own}, express-session in Express ${peer} ([Performance](docs/performance.md), also where others are cheaper; \`npm run bench -- --quick\` measures yours in two minutes).`
  writeFileSync(at('docs/pictures/performance.svg'), drawChart(memory))
  writeBlocks('bench', ['docs/performance.md', 'README.md'], blocks)
}
