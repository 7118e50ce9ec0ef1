/** What a column has to be, in the words of the dialect's catalogue. */
export interface Column {
  readonly name: string
  readonly type: string
  readonly notNull: boolean
  /** Collation, where the comparison of keys depends on it. */
  readonly collation?: string
  /** Only of columns found: whether an INSERT that does not name it succeeds. */
  readonly optional?: boolean
}

/** Refuses a table that is not ours. @throws Error that names each difference. */
export function compareColumns(table: string, expected: readonly Column[], found: readonly Column[]): void {
  const faults: string[] = []
  for (const column of expected) {
    const other = found.find(({ name }) => name === column.name)
    if (other === undefined) faults.push(`column ${column.name} is missing`)
    else if (other.type !== column.type) faults.push(`column ${column.name} is ${other.type}, not ${column.type}`)
    else if (column.collation !== undefined && other.collation !== column.collation)
      faults.push(`column ${column.name} is collated ${other.collation}, not ${column.collation}`)
    else if (other.notNull && !column.notNull) faults.push(`column ${column.name} is NOT NULL`)
  }
  for (const { name, notNull, optional } of found)
    if (notNull && optional !== true && !expected.some(column => column.name === name))
      faults.push(`column ${name} is unknown, NOT NULL, and has no default`)
  if (faults.length > 0)
    throw new Error(`table ${table} has another schema than this version of coatcheck needs: ${faults.join('; ')}`)
}
