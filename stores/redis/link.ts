// What the store asks of a client, whatever its shape.
/** A connection of the store's own: what is sent on it and the `WAIT` after it go to the same master. */
export interface Dedicated {
  /** Goes to the database that the client is at now; absent where there is only one. Before anything is sent. */
  follow?(): Promise<void>
  send(args: string[]): Promise<unknown>
  usable(): boolean
  close(): void
}

/** A master of the servers behind a client. */
export interface Master {
  /** The same text for the same master. */
  readonly name: string
  /** Whether a command would be sent now: a client whose connection is away would queue it. */
  readonly isReady: boolean
  send(args: string[]): Promise<unknown>
}

/** A client, whatever its shape. A shard says to which master a command goes. */
export interface Link {
  readonly cluster: boolean
  /**
   * Why no command can be sent for this shard now, or `null`. Without this question both clients would queue the command
   * and run it later.
   */
  notReadyReason(shard: string): string | null
  send(shard: string, args: string[]): Promise<unknown>
  /**
   * How often connections of the client have broken so far, or it has sent a command again; absent where it never does that
   * by itself.
   */
  readonly breaks?: () => number
  /**
   * `send` for several keys, where the client itself would repeat that until a slot which is moving has arrived: here it
   * is an error at once, because each key by itself can be read meanwhile.
   */
  sendTogether?(shard: string, args: string[]): Promise<unknown>
  /** What the client itself writes before every key name. */
  readonly keyPrefix: string
  /** All masters that the client knows. */
  masters(): readonly Master[] | Promise<readonly Master[]>
  /** Names the master of this shard: the same text for the same master. */
  master(shard: string): string
  /** Opens a connection of the store's own to the master of this shard. */
  dedicate(shard: string): Promise<Dedicated>
  /** Why `dedicate` is not possible with this client; absent where it is. */
  readonly cannotWait?: string
}

/** Nothing was sent: the client had no connection. */
export class NotReady extends Error {}
