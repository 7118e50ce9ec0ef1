// The users of all nodes: one table, kept by the driver, with the rules of examples/server/users.mjs and no cost of hashing.

/** A row as nodes get it: bigint does not travel between processes. */
interface Row {
  readonly id: string
  readonly name: string
  readonly hash: string
  readonly passwordVersion: number
  readonly endOthers: boolean
}

/** From when to when, epoch ms, the sessions of a user were being ended, and by which browser. */
export interface Ending {
  readonly from: number
  /** Infinity while it goes on. */
  until: number
  /** Whether it is certain that it happened. */
  certain: boolean
  /** The browser whose own session stays; `null` where it is not known which that is. */
  readonly by: unknown
  /** Whether it ends one session of the user, not all. */
  readonly one: boolean
}

/** What is given up may still happen within this time, in ms: at the database, at a node. */
export const LATE = 15_000

export class Account {
  readonly name: string
  readonly endings: Ending[] = []
  row: Row

  constructor(index: number) {
    this.name = `user${index}`
    // From both ends of what a user ID can be.
    const id = index % 2 === 0 ? BigInt(index) : 2n ** 64n - BigInt(index)
    this.row = { id: `${id}`, name: this.name, hash: 'password 1', passwordVersion: 1, endOthers: false }
  }

  get password(): string {
    return this.row.hash
  }

  beginEnding(by: unknown, one = false): Ending {
    const ending = { from: Date.now(), until: Number.POSITIVE_INFINITY, certain: false, by, one }
    this.endings.push(ending)
    return ending
  }

  /** Whether the sessions of this user were ended at some moment of this time. */
  isEndedWithin(from: number, until: number): boolean {
    return this.endings.some(ending => ending.from <= until && ending.until >= from)
  }
}

export class Users {
  readonly accounts: readonly Account[]

  constructor(count: number) {
    this.accounts = Array.from({ length: count }, (_, index) => new Account(index))
  }

  /** Answers what a node asks. */
  answer(ask: string, args: readonly any[]): Row | null {
    const [first, password] = args
    const account = this.accounts.find(({ name }) => name === (ask === 'authenticate' ? first : first.name))
    if (account === undefined) return null
    if (ask === 'authenticate') {
      if (account.row.hash !== password) return null
      // Such a login first ends what an interrupted password change has left.
      if (account.row.endOthers) account.beginEnding(null).until = Date.now() + LATE
      return account.row
    }
    if (account.row.passwordVersion !== first.passwordVersion) return null
    const change =
      ask === 'changePassword'
        ? { hash: password, passwordVersion: account.row.passwordVersion + 1, endOthers: true }
        : { endOthers: false }
    account.row = { ...account.row, ...change }
    return account.row
  }
}
