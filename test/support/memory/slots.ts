import { Slots } from '../../../stores/memory/slots.ts'

/** The slots of the stores that are made meanwhile; how many blocks they have is asked of them. */
export async function slotsOf(work: () => Promise<unknown>): Promise<Slots> {
  const real = Slots.prototype.take
  let slots: Slots | undefined
  Slots.prototype.take = function (this: Slots) {
    slots = this
    return real.call(this)
  }
  try {
    await work()
  } finally {
    Slots.prototype.take = real
  }
  return slots!
}
