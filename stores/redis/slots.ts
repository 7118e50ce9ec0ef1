// Sets of hash slots, as CLUSTER NODES and the cursor of a walk write them: `0-99,5461`.
import { SLOTS } from './keys.ts'

/** One byte for each slot: 1 where it is in the set. */
export type Slots = Uint8Array<ArrayBuffer>

/** All slots of a cluster. */
export const allSlots = (): Slots => new Uint8Array(SLOTS).fill(1)

/** Whether any slot is in the set. */
export const hasSlots = (slots: Slots) => slots.includes(1)

/** The set of some ranges: `first-last`, or one slot. */
export function slotsFrom(ranges: readonly string[]): Slots {
  const slots = new Uint8Array(SLOTS)
  for (const range of ranges) {
    const [first, last = first] = range.split('-').map(Number)
    slots.fill(1, first, last! + 1)
  }
  return slots
}

/** The ranges of a set; the inverse of `slotsFrom`, joined by commas. */
export function slotsText(slots: Slots): string {
  const ranges: string[] = []
  for (let first = slots.indexOf(1); first >= 0; ) {
    const end = slots.indexOf(0, first)
    const last = end < 0 ? SLOTS - 1 : end - 1
    ranges.push(first === last ? `${first}` : `${first}-${last}`)
    first = slots.indexOf(1, last + 1)
  }
  return ranges.join(',')
}
