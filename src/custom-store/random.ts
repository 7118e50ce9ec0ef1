/**
 * The next of a row of numbers from 0 to 2^32-1, the same row for the same seed: mulberry32 by Tommy Ettinger (public
 * domain). 32 bits of state are enough to vary tests and to repeat them.
 */
export function randomNumbers(seed: number): () => number {
  let state = seed | 0
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return (mixed ^ (mixed >>> 14)) >>> 0
  }
}

/** One of these. */
export const pick = <T>(choices: readonly T[], number: number): T => choices[number % choices.length]!
