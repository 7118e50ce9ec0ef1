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

describe('a flood of logouts with what was never there', () => {
  it('pushes out no session that ended, and nothing that is known of a new ID', () => {
    const recentlyEnded = new RecentlyEnded()
    recentlyEnded.addEnd('a')
    recentlyEnded.addNewId('b', 'c', 0)
    for (let number = 0; number <= 20_000; number += 1) recentlyEnded.addEnd(`invented ${number}`, false)
    expect(['a', 'b', 'invented 20000', 'invented 0'].map(key => recentlyEnded.isSuperseded(key))).toEqual([
      true,
      true,
      true,
      false,
    ])
  })
})
