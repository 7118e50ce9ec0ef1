// @ts-check
// What a run printed, as bench/FIGURES.md; its chart and its table of six rows, for docs/performance.md.
import { readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { TABLES } from './stores.mjs'
import { fixed, table } from './table.mjs'

const at = (/** @type {string} */ path) => fileURLToPath(new URL(`../${path}`, import.meta.url))
const page = at('docs/performance.md')

/** Peers of the table, by the beginning of their label. */
const PEERS = ['express-session', '@fastify/session', 'better-auth', 'JWT, jose']
/** Bars of the chart, in groups: what is in a group does the same work in the same framework. */
const BARS = [
  ['by hand', 'coatcheck'],
  ['Express alone, by hand', 'coatcheck in Express', 'express-session'],
  ['@fastify/session', 'koa-session', 'better-auth', 'iron-session', 'JWT, jose'],
]
const NAMES = /** @type {Record<string, string>} */ ({
  'by hand': 'node:http, a Map by hand',
  coatcheck: 'node:http, coatcheck',
  'Express alone, by hand': 'Express, a Map by hand',
  'coatcheck in Express': 'Express, coatcheck',
  'express-session': 'Express, express-session',
  'JWT, jose': 'a JWT, jose',
})

/** @typedef {Awaited<ReturnType<typeof import('./contest.mjs').contest>>} Medians */

/** @param {Medians} medians @returns {string} */
function chart(medians) {
  const groups = BARS.map(labels => labels.filter(label => medians.get(label)?.has('profile')))
  const ratio = (/** @type {string} */ label) => Number(medians.get(label)?.get('profile')?.ratio)
  const most = Math.max(...groups.flat().map(ratio))
  const [LEFT, WIDTH, BAR, STEP, GAP] = [190, 640, 20, 28, 16]
  const scale = (WIDTH - LEFT - 60) / most
  let y = 8
  const parts = []
  for (const group of groups) {
    for (const label of group) {
      const own = label.includes('coatcheck')
      const width = Math.max(1, ratio(label) * scale)
      parts.push(
        `<text x="${LEFT - 10}" y="${y + 15}" text-anchor="end"${own ? ' font-weight="600"' : ''}>${NAMES[label] ?? label}</text>`,
        `<rect x="${LEFT}" y="${y}" width="${fixed(width, 1)}" height="${BAR}" rx="4" fill="${own ? '#a5475b' : '#b3a79c'}"/>`,
        `<text x="${fixed(LEFT + width + 8, 1)}" y="${y + 15}">${fixed(ratio(label))}</text>`,
      )
      y += STEP
    }
    y += GAP
  }
  const title = 'Processor time for a GET of a logged-in user, sessions in memory; a Map by hand on node:http is 1'
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${y - GAP + 2}" width="${WIDTH}" role="img" aria-label="${title}" font-family="system-ui, sans-serif" font-size="14" fill="#8a7f76">
<title>${title}</title>
${parts.join('\n')}
</svg>
`
}

/** @param {Map<string, Medians>} all */
function sixRows(all) {
  const rows = Object.keys(TABLES).map(name => {
    const medians = all.get(name)
    if (medians === undefined) throw new Error(`there is no table of ${name}: nothing was written`)
    const cell = (/** @type {string} */ start) => {
      const [, found] = [...medians].find(([label]) => label.startsWith(start)) ?? []
      const profile = found?.get('profile')
      return profile ? fixed(profile.ratio) : '–'
    }
    const own = medians.get('coatcheck')?.get('profile')
    const half = own ? ` (${fixed(own.low)} to ${fixed(own.high)})` : ''
    return [TABLES[name]?.title ?? name, cell('coatcheck') + half, ...PEERS.map(cell)]
  })
  return table(['sessions in', 'coatcheck', ...PEERS], rows)
}

/** @param {Map<string, Medians>} all @param {readonly string[]} heading @param {readonly string[]} said */
export function writeFigures(all, heading, said) {
  const rows = sixRows(all)
  writeFileSync(at('docs/pictures/performance.svg'), chart(/** @type {Medians} */ (all.get('memory'))))
  writeFileSync(
    at('bench/FIGURES.md'),
    `# Figures\n\nWhat one run of the benchmarks printed. [Performance](../docs/performance.md) says how to read it.\n\n${heading.map(line => `- ${line}`).join('\n')}\n${said.join('\n')}\n`,
  )
  const text = readFileSync(page, 'utf8')
  const run = `${heading[0]?.replace(/\.$/, '')}: ${heading[1]}`
  writeFileSync(
    page,
    text
      .replace(/(<!-- printed by [^\n]*-->\n)(?:\|.*\n)*/, (_, mark) => `${mark}${rows}\n`)
      .replace(/(<!-- the run -->\n).*\n/, (_, mark) => `${mark}${run}\n`),
  )
}
