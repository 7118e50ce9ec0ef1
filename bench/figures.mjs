// @ts-check
// For docs/performance.md: its table of six rows, its chart, which the README quotes, and what the runs printed,
// bench/FIGURES.md.
import { readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { CHART, PEERS, TABLES } from './stores.mjs'
import { fixed, table } from './table.mjs'

const at = (/** @type {string} */ path) => fileURLToPath(new URL(`../${path}`, import.meta.url))
const page = at('docs/performance.md')

const NAMES = /** @type {Record<string, string>} */ ({
  'by hand': 'node:http, a Map by hand',
  coatcheck: 'node:http, coatcheck',
  'Express alone, by hand': 'Express, a Map by hand',
  'coatcheck in Express': 'Express, coatcheck',
  'express-session': 'Express, express-session',
})

/** @typedef {Awaited<ReturnType<typeof import('./contest.mjs').contest>>} Medians */

/** @param {readonly string[]} heading @param {number} fewest @param {number} most */
const runOf = (heading, fewest, most) =>
  `${heading[0]?.replace(/\.$/, '')}: ${heading[1]} ${fewest === most ? most : `${fewest} to ${most}`} rounds.`

/** @param {Medians} medians @param {readonly string[]} heading */
export function writeChart(medians, heading) {
  const bars = CHART.map(({ label }) => ({ label, ratio: Number(medians.get(label)?.get('profile')?.ratio) }))
  const [LEFT, WIDTH, BAR, STEP, GAP] = [200, 640, 20, 28, 16]
  const scale = (WIDTH - LEFT - 60) / Math.max(...bars.map(({ ratio }) => ratio))
  const [, , express, ours, peer] = bars.map(({ ratio }) => fixed(ratio, 1))
  const readme = at('README.md')
  writeFileSync(
    readme,
    readFileSync(readme, 'utf8').replace(
      /Express alone [\d.]+, coatcheck in Express [\d.]+, express-session in Express [\d.]+/,
      `Express alone ${express}, coatcheck in Express ${ours}, express-session in Express ${peer}`,
    ),
  )
  const { rounds = 0 } = medians.get('coatcheck')?.get('profile') ?? {}
  const run = runOf(heading, rounds, rounds)
  writeFileSync(
    page,
    readFileSync(page, 'utf8').replace(/(<!-- the run of the chart -->\n).*\n/, (_, mark) => `${mark}${run}\n`),
  )
  let y = 8
  const parts = []
  for (const { label, ratio } of bars) {
    const own = label.includes('coatcheck')
    if (label === 'Express alone, by hand') y += GAP
    parts.push(
      `<text x="${LEFT - 10}" y="${y + 15}" text-anchor="end"${own ? ' font-weight="600"' : ''}>${NAMES[label]}</text>`,
      `<rect x="${LEFT}" y="${y}" width="${fixed(ratio * scale, 1)}" height="${BAR}" rx="4" fill="${own ? '#a5475b' : '#b3a79c'}"/>`,
      `<text x="${fixed(LEFT + ratio * scale + 8, 1)}" y="${y + 15}">${fixed(ratio, 1)}</text>`,
    )
    y += STEP
  }
  const title = 'Processor time for a GET of a logged-in user, sessions in memory; a Map by hand on node:http is 1'
  writeFileSync(
    at('docs/pictures/performance.svg'),
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${y}" width="${WIDTH}" role="img" aria-label="${title}" font-family="system-ui, sans-serif" font-size="14">
<title>${title}</title>
<style>text { fill: #241f1c } @media (prefers-color-scheme: dark) { text { fill: #efe9e2 } }</style>
${parts.join('\n')}
</svg>
`,
  )
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

/** @param {Map<string, Medians>} all @param {readonly string[]} heading */
export function writeTable(all, heading) {
  const rows = sixRows(all)
  const counts = [...all.values()].map(medians => Number(medians.get('coatcheck')?.get('profile')?.rounds))
  const run = runOf(heading, Math.min(...counts), Math.max(...counts))
  writeFileSync(
    page,
    readFileSync(page, 'utf8')
      .replace(/(<!-- printed by [^\n]*-->\n)(?:\|.*\n)*/, (_, mark) => `${mark}${rows}\n`)
      .replace(/(<!-- the run -->\n).*\n/, (_, mark) => `${mark}${run}\n`),
  )
}

/** A part of the file for each command: another run of it takes the place of the last one. @param {readonly string[]} heading @param {readonly string[]} said */
export function writeFigures(heading, said) {
  const command = String(heading[0]?.split(',')[0])
  const file = at('bench/FIGURES.md')
  const [intro = '', ...parts] = readFileSync(file, 'utf8').split(/^## /m)
  const others = parts.filter(part => !part.startsWith(`${command}\n`)).map(part => `## ${part.trim()}\n`)
  const own = `## ${command}\n\n${heading.map(line => `- ${line}`).join('\n')}\n${said.join('\n')}\n`
  writeFileSync(
    file,
    [intro, ...others, own]
      .map(part => part.trim())
      .join('\n\n')
      .concat('\n'),
  )
}
