import { expect, it } from 'vitest'
import { SweepPace } from '../../../stores/sql/sweep-pace.ts'

const MOST = 250

/** How many rows the statements remove, where one takes `way` ms and `each` more for each row. */
function rowsOf(pace: SweepPace, way: number, each: number, statements = 60): number[] {
  return Array.from({ length: statements }, () => {
    const { rows } = pace
    pace.took(rows, rows, way + each * rows)
    return rows
  })
}

it.each([30, 150, 900])('a database %i ms away is swept by as many rows at once as one beside it', way => {
  const pace = new SweepPace(MOST)
  rowsOf(pace, way, 0.01)
  pace.tooMany(8)
  expect(rowsOf(pace, way, 0.01).at(-1)).toBe(MOST)
})

it('one that has answered slowly for a moment too', () => {
  const pace = new SweepPace(MOST)
  rowsOf(pace, 30, 0.01)
  for (let time = 0; time < 20; time++) pace.took(pace.rows, pace.rows, 400)
  expect(rowsOf(pace, 30, 0.01).at(-1)).toBe(MOST)
})

it.each([
  [5, 20],
  [20, 5],
  [200, 2],
])('rows that take %i ms each are removed by at most %i at once', (each, most) => {
  const pace = new SweepPace(MOST)
  expect(Math.max(...rowsOf(pace, 2, each).slice(-20))).toBeLessThanOrEqual(most)
})

it('a slow moment in which nothing was there to remove does not hide how long the rows take', () => {
  const pace = new SweepPace(MOST)
  for (const ms of [2, 2, 3000]) pace.took(MOST, 0, ms)
  expect(Math.max(...rowsOf(pace, 2, 5).slice(-20))).toBeLessThanOrEqual(20)
  expect(pace.expected(10)).toBeLessThan(100)
})

it('a database that has moved far away is swept by many rows again', () => {
  const pace = new SweepPace(MOST)
  for (const ms of [2, 2, 2, 2]) pace.took(MOST, 0, ms)
  expect(rowsOf(pace, 300, 0.01).at(-1)).toBe(MOST)
})

it('tells how long a statement is going to take, the way to the database with it', () => {
  const pace = new SweepPace(MOST)
  rowsOf(pace, 150, 0.1)
  expect(pace.expected(10)).toBeGreaterThanOrEqual(150)
  expect(pace.expected(MOST)).toBeLessThan(250)
})
