/** Before this, milliseconds are seconds: 1973. */
const FIRST = 1e11

/** Whether an instant that should be in epoch milliseconds is in seconds. */
export const isInSeconds = (instant: number): boolean => instant < FIRST

/** @throws TypeError always: it says how seconds become milliseconds */
export function refuseSeconds(name: string, instant: number): never {
  throw new TypeError(
    `${name}: expected epoch milliseconds, got ${instant}, which looks like seconds: multiply by 1000`,
  )
}
