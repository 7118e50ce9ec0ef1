// @ts-check

/**
 * A Markdown table, its columns aligned; numbers to the right.
 * @param {readonly string[]} head
 * @param {readonly (readonly string[])[]} rows
 * @param {number} [words] how many columns from the left are words
 */
export function table(head, rows, words = 1) {
  const widths = head.map((title, column) => Math.max(title.length, ...rows.map(row => row[column]?.length ?? 0)))
  const line = (/** @type {readonly string[]} */ cells) =>
    `| ${cells.map((cell, column) => (column < words ? cell.padEnd(widths[column] ?? 0) : cell.padStart(widths[column] ?? 0))).join(' | ')} |`
  const rule = widths.map((width, column) => (column < words ? '-'.repeat(width + 2) : `${'-'.repeat(width + 1)}:`))
  return [line(head), `|${rule.join('|')}|`, ...rows.map(line)].join('\n')
}

/** @param {number} value @param {number} [digits] */
export const fixed = (value, digits = 2) => value.toFixed(digits)
/** @param {number} value */
export const whole = value => Math.round(value).toLocaleString('en')
