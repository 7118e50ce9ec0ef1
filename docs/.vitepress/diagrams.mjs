// @ts-check
// Draws the sequence diagrams of the pages, which are text in Mermaid's language. GitHub draws them itself; for the site
// these lines do, since Mermaid takes two megabytes of every reader. What they do not know they refuse.

const WIDTH = 688
const [TOP, STEP, BOX] = [60, 44, 32]

const quoted = (/** @type {string} */ text) =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;')

/**
 * A diagram as an element of HTML, on lines none of which is empty.
 * @param {string} text between the fences
 */
export function draw(text) {
  const [kind, ...lines] = text
    .trim()
    .split('\n')
    .map(line => line.trim())
  if (kind !== 'sequenceDiagram') throw new Error(`only sequence diagrams can be drawn, and no ${kind}`)
  /** Names by the short ones. @type {Map<string, string>} */
  const actors = new Map()
  const steps = []
  for (const line of lines) {
    const [, id, name] = /^participant (\w+) as (.+)$/.exec(line) ?? []
    if (id && name) actors.set(id, name)
    else steps.push(line)
  }
  const lane = WIDTH / actors.size
  const at = (/** @type {string} */ id) => {
    const index = [...actors.keys()].indexOf(id)
    if (index < 0) throw new Error(`there is no participant ${id}`)
    return lane * (index + 0.5)
  }
  const parts = []
  let y = TOP + 14
  for (const step of steps) {
    const [, from, arrow, to, said] = /^(\w+)(--?>>)(\w+): (.+)$/.exec(step) ?? []
    const [, over, remark] = /^Note over (\w+(?:,\w+)*): (.+)$/.exec(step) ?? []
    if (from && to && said) {
      const [start, end] = [at(from), at(to)]
      const back = end < start
      const dashes = arrow === '-->>' ? ' stroke-dasharray="5 4"' : ''
      parts.push(
        `<text x="${(start + end) / 2}" y="${y + 4}" class="said">${quoted(said)}</text>`,
        `<path d="M${start} ${y + 14}H${end + (back ? 7 : -7)}" class="line"${dashes}/>`,
        `<path d="M${end} ${y + 14}l${back ? 8 : -8} -4.5v9z" class="tip"/>`,
      )
    } else if (over && remark) {
      const places = over.split(',').map(at)
      const middle = (Math.min(...places) + Math.max(...places)) / 2
      const width = Math.max(Math.max(...places) - Math.min(...places), remark.length * 7 + 24)
      const left = Math.min(Math.max(middle - width / 2, 4), WIDTH - width - 4)
      parts.push(
        `<rect x="${left}" y="${y - 8}" width="${width}" height="28" rx="6" class="note"/>`,
        `<text x="${left + width / 2}" y="${y + 11}" class="remark">${quoted(remark)}</text>`,
      )
    } else throw new Error(`a diagram has a line that cannot be drawn: ${step}`)
    y += STEP
  }
  const heads = [...actors].map(([id, name]) => {
    const width = Math.min(lane - 12, 150)
    return `<path d="M${at(id)} ${TOP - 16}V${y}" class="life"/>
<rect x="${at(id) - width / 2}" y="8" width="${width}" height="${BOX}" rx="8" class="actor"/>
<text x="${at(id)}" y="29" class="name">${quoted(name)}</text>`
  })
  const label = `Sequence: ${[...actors.values()].map(quoted).join(', ')}`
  return `<figure class="diagram" v-pre>
<svg viewBox="0 0 ${WIDTH} ${y + 4}" role="img" aria-label="${label}">
${[...heads, ...parts].join('\n')}
</svg>
</figure>`
}

/** A page with its diagrams drawn. @param {string} page */
export const drawAll = page => page.replaceAll(/^```mermaid\n([\s\S]*?)^```$/gm, (_, text) => draw(text))
