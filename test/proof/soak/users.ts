// The users of all nodes: one table, kept by the driver, with the rules of examples/server/users.mjs and no cost of hashing.

/** A row of the table that all nodes share. */
interface Row {
  readonly id: string
  readonly name: string
  readonly hash: string
  readonly passwordVersion: number
  readonly endOthers: boolean
}

export class Users {
  readonly rows = new Map<string, Row>()

  add(index: number): string {
    const name = `user${index}`
    // From both ends of what a user ID can be.
    const id = index % 2 === 0 ? BigInt(index) : 2n ** 64n - BigInt(index)
    this.rows.set(name, { id: `${id}`, name, hash: 'password 1', passwordVersion: 1, endOthers: false })
    return name
  }

  /** Answers what a node asks. */
  answer(ask: string, [first, password]: readonly any[]): Row | null {
    const row = this.rows.get(ask === 'authenticate' ? first : first.name)
    if (row === undefined) return null
    if (ask === 'authenticate') return row.hash === password ? row : null
    if (row.passwordVersion !== first.passwordVersion) return null
    const change =
      ask === 'changePassword'
        ? { hash: password, passwordVersion: row.passwordVersion + 1, endOthers: true }
        : { endOthers: false }
    const changed = { ...row, ...change }
    this.rows.set(row.name, changed)
    return changed
  }
}
