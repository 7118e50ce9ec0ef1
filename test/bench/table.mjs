// @ts-check

/**
 * A Markdown table, its columns aligned; numbers to the right.
 * @param {readonly string[]} head
 * @param {readonly (readonly string[])[]} rows
 */
export function table(head, rows) {
  const widths = head.map((title, column) => Math.max(title.length, ...rows.map(row => row[column]?.length ?? 0)))
  const line = (/** @type {readonly string[]} */ cells) =>
    `| ${cells.map((cell, column) => (column === 0 ? cell.padEnd(widths[column] ?? 0) : cell.padStart(widths[column] ?? 0))).join(' | ')} |`
  const rule = widths.map((width, column) => (column === 0 ? '-'.repeat(width + 2) : `${'-'.repeat(width + 1)}:`))
  return [line(head), `|${rule.join('|')}|`, ...rows.map(line)].join('\n')
}

/** @param {number} value @param {number} [digits] */
export const fixed = (value, digits = 2) => value.toFixed(digits)
/** @param {number} value */
export const whole = value => Math.round(value).toLocaleString('en')

/** @param {readonly import('./rounds.mjs').Score[]} scores @param {string} floor @param {Map<string, readonly string[]>} [more] @param {readonly string[]} [moreHead] */
export const scoreTable = (scores, floor, more = new Map(), moreHead = []) =>
  table(
    ['GET /profile', `CPU time, ${floor} = 1`, 'middle half of the rounds', ...moreHead],
    scores.map(({ name, ratio, low, high }) => [
      name,
      fixed(ratio),
      `${fixed(low)} to ${fixed(high)}`,
      ...(more.get(name) ?? []),
    ]),
  )
