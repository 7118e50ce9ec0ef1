// What a run measures again and again, and whether it grew: the last third of the samples beside the second third. The
// first third is for caches and compiled code to fill.
import type { Figures } from './nodes.ts'

export interface Sample extends Pick<Figures, 'heapUsed' | 'handles'> {
  readonly connections: number
}

const median = (values: readonly number[]) => {
  const sorted = [...values].sort((a, b) => a - b)
  return sorted[Math.floor(sorted.length / 2)] ?? Number.NaN
}

const thirds = (samples: readonly Sample[], what: keyof Sample) => {
  const third = Math.floor(samples.length / 3)
  const values = samples.map(sample => sample[what])
  return [median(values.slice(third, 2 * third)), median(values.slice(2 * third))] as const
}

/** How much each may rise between the two thirds: generous, because a leak is larger than any noise in the end. */
const ALLOWED: Partial<Record<keyof Sample, (before: number) => number>> = {
  heapUsed: before => Math.max(6_000_000, before * 0.15),
  handles: before => Math.max(40, before * 0.3),
  connections: before => Math.max(10, before * 0.3),
}

/** Complaints about what grew. */
export function growthIn(samples: readonly Sample[]): string[] {
  if (samples.length < 6) return [`only ${samples.length} samples were taken: whether anything grew is not known`]
  return Object.entries(ALLOWED).flatMap(([what, allowed]) => {
    const [before, after] = thirds(samples, what as keyof Sample)
    return after - before > allowed(before) ? [`${what} grew from ${before} to ${after}`] : []
  })
}
