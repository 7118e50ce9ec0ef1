// @ts-check
/**
 * Rows as text in columns, the first row as head.
 * @param {readonly (readonly string[])[]} rows
 * @returns {string}
 */
export function table(rows) {
  /** @type {number[]} */
  const widths = []
  for (const row of rows)
    for (const [index, cell] of row.entries()) widths[index] = Math.max(widths[index] ?? 0, cell.length)
  const line = (/** @type {readonly string[]} */ row) =>
    row.map((cell, index) => cell.padEnd(widths[index] ?? 0)).join('  ')
  const [head = [], ...body] = rows
  return [line(head), widths.map(width => '-'.repeat(width)).join('  '), ...body.map(line)]
    .map(text => `  ${text.trimEnd()}`)
    .join('\n')
}
