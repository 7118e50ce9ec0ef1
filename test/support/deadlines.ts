// Deadlines of store calls, on the clock of `performance.now()`.

/** So many ms from now: for a call that must be given up by then, or that must still be in time then. */
export const within = (ms: number) => performance.now() + ms

/** For a call that must succeed: a busy machine may stand still for a second in its midst. */
export const soon = () => within(30_000)
