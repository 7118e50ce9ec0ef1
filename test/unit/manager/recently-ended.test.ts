// What one process remembers of sessions that ended a moment ago: the requests of one browser run
// in parallel.
import { describe, expect, it } from 'vitest'
import { RecentlyEnded } from '../../../src/manager/recently-ended.ts'

describe('what this process remembers of a session', () => {
  it('that got a new ID: nothing may begin under the old one, and the new one lives', () => {
    const recentlyEnded = new RecentlyEnded()
    recentlyEnded.addNewId('a', 'b', 0)
    expect([recentlyEnded.isSuperseded('a'), recentlyEnded.isEnded('a')]).toEqual([true, false])
    expect([recentlyEnded.isSuperseded('b'), recentlyEnded.isEnded('b')]).toEqual([false, false])
  })

  it('that ended: its successors have ended too, whichever is heard of first', () => {
    for (const order of [0, 1]) {
      const recentlyEnded = new RecentlyEnded()
      recentlyEnded.addNewId('b', 'c', 0)
      const steps = [() => recentlyEnded.addEnd('a'), () => recentlyEnded.addNewId('a', 'b', 0)]
      for (const at of [order, 1 - order]) steps[at]!()
      expect(['a', 'b', 'c'].map(key => recentlyEnded.isEnded(key))).toEqual([true, true, true])
    }
  })

  it('spares the one that is to go on, and what follows from it', () => {
    const recentlyEnded = new RecentlyEnded()
    for (const [from, to] of ['ab', 'bc']) recentlyEnded.addNewId(from!, to!, 0)
    recentlyEnded.addEnd('a', true, 'b')
    expect(['a', 'b', 'c'].map(key => recentlyEnded.isEnded(key))).toEqual([true, false, false])
  })

  it('comes to an end if sessions lead to each other in a ring', () => {
    const recentlyEnded = new RecentlyEnded()
    for (const [from, to] of ['ab', 'ba']) recentlyEnded.addNewId(from!, to!, 0)
    recentlyEnded.addEnd('a')
    expect(recentlyEnded.isEnded('b')).toBe(true)
  })
})
