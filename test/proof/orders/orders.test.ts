// Every order of the store calls, timers, callbacks, heads and responses of requests that run at the same time. The short
// form ends after a number of runs, the same on every machine; `npm run proof -- orders --minutes 30` takes as
// long as it is told to.
import assert from 'node:assert/strict'
import { describe, expect, it } from 'vitest'
import { loadLibrary } from './library.ts'
import { groupsOf } from './scenes.ts'
import { type Report, searchAll, searchSome } from './search.ts'

const minutes = Number(process.env.COATCHECK_ORDERS_MINUTES ?? 0)
const groups = groupsOf(minutes > 0)
const runs = minutes > 0 ? Number.POSITIVE_INFINITY : 300
const budget = minutes > 0 ? minutes * 60_000 : Number.POSITIVE_INFINITY
const seed = Number(process.env.COATCHECK_ORDERS_SEED || 20_261_122)
let weights = groups.reduce((sum, { weight }) => sum + weight, 0)
let budgetLeft = budget

describe('every order', () => {
  for (const { name, scenes, weight, random } of groups) {
    it(
      `of ${name} keeps what is promised`,
      async () => {
        const library = await loadLibrary()
        const begun = Date.now()
        // What one group does not need is left to those after it.
        const time = (budgetLeft * weight) / weights
        const reports: Report[] = []
        const broken: string[] = []
        for (const [at, scene] of scenes.entries()) {
          const left = begun + time - Date.now()
          if (left <= 0) break
          // What one scene does not need is left to those after it; one that is large leaves them something.
          const until = Date.now() + Math.max(left / 8, (4 * left) / (scenes.length - at))
          const searching =
            random === undefined
              ? searchAll({ library }, scene, { runs, until })
              : searchSome({ library }, scene, { runs: random, seed, until })
          await searching.then(
            report => reports.push(report),
            (error: Error) => broken.push(error.message),
          )
        }
        weights -= weight
        budgetLeft -= Date.now() - begun
        const sum = (count: (report: Report) => number) => reports.reduce((all, each) => all + count(each), 0)
        const unfinished = reports.filter(({ left }) => left > 0)
        const counts = {
          ...{ scenes: scenes.length, 'walked through': reports.length - unfinished.length },
          ...{ 'not to the end': unfinished.length, 'not begun': scenes.length - reports.length },
          ...{ orders: sum(({ orders }) => orders), states: sum(({ states }) => states) },
          ...{ runs: sum(({ runs }) => runs), 'choices left': sum(({ left }) => left) },
        }
        const lot = random === undefined ? '' : `, by lot with seed ${seed}`
        const details =
          minutes > 0 ? reports.map(({ scene, orders, left }) => `${scene}: ${orders} orders, ${left} left`) : []
        const told = Object.entries(counts).map(([what, count]) => `${what} ${count.toLocaleString('en')}`)
        console.log([`${name}${lot}: ${told.join(', ')}`, ...details].join('\n'))
        if (broken.length > 0) assert.fail(`${broken.length} scenes are broken\n${broken.join('\n')}`)
        expect(sum(({ orders }) => orders)).toBeGreaterThan(0)
        if (minutes === 0) expect(reports.length).toBe(scenes.length)
      },
      minutes > 0 ? budget + 120_000 : 600_000,
    )
  }
})
