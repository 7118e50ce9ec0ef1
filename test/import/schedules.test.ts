// Requests of one browser on several nodes, whose store calls come in any order.
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { BEGIN, cookieAt, OLD, replacement, SID } from '../support/old-sessions.ts'

const VERBS = ['create', 'read', 'update', 'touch', 'replace', 'delete'] as const

/** Runs requests at once, and lets their calls of both stores proceed in the order that the scheduler draws. */
async function run(scheduler: fc.Scheduler, kinds: readonly ('ask' | 'leave')[]) {
  const world = replacement()
  world.old.put(SID, { cookie: cookieAt(BEGIN), userId: '42', name: 'ada' })
  const inTurn = async (proceed: () => Promise<unknown>) => {
    await scheduler.schedule(Promise.resolve())
    return proceed()
  }
  for (const verb of VERBS) world.store.every(verb, inTurn)
  const get = world.old.get.bind(world.old)
  const destroy = world.old.destroy.bind(world.old)
  world.old.get = (id, callback) => void scheduler.schedule(Promise.resolve()).then(() => get(id, callback))
  world.old.destroy = (id, callback) => void scheduler.schedule(Promise.resolve()).then(() => destroy(id, callback))
  let left = false
  const requests = kinds.map(async kind => {
    const node = world.node({ manager: { storeTimeout: '60s' } })
    const answer = await node.ask(OLD)
    if (kind !== 'leave') return answer
    await answer.visit.logOut()
    left = true
    return null
  })
  const all = Promise.all(requests)
  await scheduler.waitFor(all)
  for (const verb of VERBS) world.store.every(verb, proceed => proceed())
  world.old.get = get
  world.old.destroy = destroy
  return { world, answers: (await all).filter(answer => answer !== null), left }
}

const kindsOf = (...kinds: ('ask' | 'leave')[]) => fc.array(fc.constantFrom(...kinds), { minLength: 2, maxLength: 5 })

describe('in any order of the calls of both stores', () => {
  it('all requests find one session, and the old record goes when the browser comes with our cookie', async () => {
    await fc.assert(
      fc.asyncProperty(fc.scheduler(), kindsOf('ask'), async (scheduler, kinds) => {
        const { world, answers } = await run(scheduler, kinds)
        expect(answers.map(({ name }) => name)).toEqual(kinds.map(() => 'ada'))
        expect(new Set(answers.map(({ session }) => session?.secret)).size).toBe(1)
        const node = world.node()
        expect(await node.sessions.list(42n)).toHaveLength(1)
        for (const { next } of answers) expect((await node.ask(next())).name).toBe('ada')
        expect(world.old.records.size).toBe(0)
        await world.close()
      }),
      { numRuns: 150 },
    )
  }, 120_000)

  it('a logout that was acknowledged is not undone, whatever the others do', async () => {
    await fc.assert(
      fc.asyncProperty(fc.scheduler(), kindsOf('ask', 'leave'), async (scheduler, kinds) => {
        const { world, answers, left } = await run(scheduler, kinds)
        const node = world.node()
        if (left) {
          expect((await node.ask(OLD)).name).toBeNull()
          for (const { next } of answers) expect((await node.ask(next())).name).toBeNull()
          expect(await node.sessions.list(42n)).toEqual([])
        }
        await world.close()
      }),
      { numRuns: 150 },
    )
  }, 120_000)
})
