import { expect, it } from 'vitest'
import { parseSeries } from '../../../src/manager/series.ts'

it('a series is read in each of its states', () => {
  const fresh = {
    current: 'a'.repeat(43),
    previous: null,
    salt: '',
    rotatedAt: 1,

    createdAt: 0,
    touchedAt: null,
    issuedFor: 'd'.repeat(46),
  }
  const rotated = { ...fresh, previous: 'b'.repeat(43), salt: 'c'.repeat(16), createdAt: 2 }
  for (const series of [fresh, rotated, { ...rotated, touchedAt: 3 }, { ...rotated, mustEndEarlier: true }])
    expect(parseSeries(JSON.stringify(series))).toEqual(series)
})
