import { MemoryStore } from 'coatcheck/stores/memory'
import { describe, expect, it, vi } from 'vitest'
import { faults } from '../support/barrier-store.ts'
import {
  checkEnding,
  type Ending,
  inEveryOrder,
  type Plan,
  prepared,
  type Scene,
  type Step,
  send,
  steps,
} from '../support/parallel.ts'

const store = new MemoryStore()
const open = () => store
const every = { all: 5000 }
const LONG = process.env.COATCHECK_LONG === '1'

/** All ends of two requests with the cookies of `before`. */
async function ends(before: string, requests: readonly Step[], more: Partial<Plan> = {}): Promise<Ending[]> {
  const all: Ending[] = []
  const plan = { open, orders: every, prepare: prepared[before]!, requests, ...more }
  await inEveryOrder(plan, async ending => {
    all.push(ending)
  })
  expect(all.length).toBeLessThan(every.all)
  return all
}

describe.each(Object.keys(prepared))('two requests of a browser with %s, in orders drawn by lot', before => {
  const names = Object.keys(steps)
  it.each(names)('%s beside each other request', async first => {
    for (const second of names.slice(names.indexOf(first))) {
      const requests = [steps[first]!, steps[second]!]
      const orders = { random: LONG ? 20 : 3, seed: 20_261_121 }
      await inEveryOrder({ open, orders, prepare: prepared[before]!, requests }, ending =>
        checkEnding([first, second], ending),
      )
    }
  })
})

/** Of 3,000 orders and more. */
const some = LONG ? { all: Number.POSITIVE_INFINITY } : { random: 200, seed: 20_261_124 }

describe('in the orders of their store calls and heads', () => {
  it.each<[before: string, first: string, second: string, orders?: Plan['orders']]>([
    // B1: what a remember token began ends with the logout, or with another user's login.
    ['a remember token alone', 'a page view', 'a logout'],
    ['a remember token alone', 'a page view', 'a login'],
    ['a remember token alone', 'a save', 'a logout'],
    // B2: nothing begins in place of what was left.
    ['an anonymous session', 'a save', 'a login'],
    ['a dead session', 'a save', 'a login'],
    ['a dead session', 'a new anonymous session', 'a login'],
    // B3: successors end too.
    ['a session', 'a new ID', 'a login'],
    ['a session', 'a new ID, used at once', 'a login'],
    ['a session', 'a rotation', 'a login'],
    ['a session', 'a new ID', 'a logout'],
    // B13: one of two equal logins lives.
    ['an anonymous session', 'a login', 'a login'],
    ['an anonymous session', 'a login', 'a logout'],
    ['a session', 'a login to be remembered', 'a logout'],
    // Of B1, of B2, and of B13.
    ['a remember token alone', 'a page view', 'a login to be remembered', some],
    ['a session that was never used, and its next token', 'a page view', 'a logout', some],
    ['a remember token alone', 'a save', 'a login', some],
    ['a remember token alone', 'a login to be remembered', 'a login to be remembered', some],
  ])('with %s: %s beside %s', async (before, first, second, orders = every) => {
    const requests = [steps[first]!, steps[second]!]
    const count = await inEveryOrder({ open, orders, prepare: prepared[before]!, requests }, ending =>
      checkEnding([first, second], ending),
    )
    expect(count).toBeGreaterThan(5)
    if (orders === every) expect(count).toBeLessThan(every.all)
  })
})

describe('a late request', () => {
  const late = async (scene: Scene, cookies: string, step: (visit: ReturnType<Scene['visit']>) => Promise<unknown>) => {
    const visit = scene.visit(cookies)
    const answer = await step(visit).catch((error: { code: string }) => error.code)
    return { answer, cookies: visit.finish().headers.getSetCookie() }
  }
  const inScene = async (before: string, run: (scene: Scene) => Promise<void>) => {
    const orders = { all: 1 }
    await inEveryOrder({ open, orders, prepare: prepared[before]!, requests: [] }, ({ scene }) => run(scene))
  }
  const leaving: [string, Step][] = [
    ['a login', steps['a login']!],
    ['a logout', steps['a logout']!],
    ['a new ID', steps['a new ID']!],
    ['a new anonymous session', steps['a new anonymous session']!],
  ]
  it.each(leaving)('with the old ID begins nothing after %s', async (_, leave) => {
    for (const before of ['an anonymous session', 'a session', 'a session and a remember token'])
      await inScene(before, async scene => {
        const cookies = scene.jar.header
        await send(scene, leave)
        expect(await late(scene, cookies, each => each.get())).toEqual({ answer: null, cookies: [] })
        expect(await late(scene, cookies, each => each.update({ n: 1 }))).toEqual({ answer: null, cookies: [] })
        expect(await late(scene, cookies, each => each.create())).toEqual({
          answer: 'ERR_SESSION_CONFLICT',
          cookies: [],
        })
      })
  })

  it('begins one again after ten minutes, also where nothing else ended meanwhile', async () => {
    for (const { scene } of await ends('an anonymous session', [], { orders: { all: 1 } })) {
      await scene.visit().logOut()
      const start = performance.now()
      const now = vi.spyOn(performance, 'now').mockReturnValue(start + 200_000)
      try {
        expect(await scene.visit().update({ n: 1 })).toBeNull()
        now.mockReturnValue(start + 601_000)
        expect(await scene.visit().update({ n: 1 })).toMatchObject({ data: { n: 1 } })
      } finally {
        now.mockRestore()
      }
    }
  })

  it('with a spent remember token alone begins nothing after a login or a logout', async () => {
    for (const leave of ['a login', 'a login to be remembered', 'a logout'])
      await inScene('a remember token alone', async scene => {
        const cookies = scene.jar.header
        const visit = scene.visit()
        await steps[leave]!(visit, scene)
        expect(await late(scene, cookies, each => each.update({ n: 1 }))).toEqual({ answer: null, cookies: [] })
      })
  })

  it('begins an anonymous session where another device ended the old one: the browser has nothing else', async () => {
    await inScene('a session', async scene => {
      const { key } = (await scene.visit().get())!
      expect(await scene.sessions.revoke(scene.ada.id, key)).toBe(true)
      const { answer, cookies } = await late(scene, scene.jar.header, each => each.update({ n: 1 }))
      expect(answer).toMatchObject({ user: null, data: { n: 1 } })
      expect(cookies).toHaveLength(1)
    })
  })

  it('begins one too when the old ID is forgotten, or was never known', async () => {
    await inScene('a dead session', async scene => {
      expect(await scene.visit().update({ n: 1 })).toMatchObject({ data: { n: 1 } })
    })
  })
})

describe('what another process began with a remember token', () => {
  const forget: Step = (_, { sessions, jar }) => sessions.revokeRememberToken(jar.cookies.get('remember_token')!)
  it.each([
    ['a logout', steps['a logout']!],
    ['a login', steps['a login']!],
    ['forget', forget],
  ])('is dead after %s, whenever it began', async (_, end) => {
    const all = await ends('a remember token alone', [
      async (_visit, scene) => scene.other.redeemRememberToken(scene.jar.cookies.get('remember_token')!),
      end,
    ])
    for (const { scene, series, trace } of all) {
      expect(series, trace).toEqual([])
      expect(await scene.sessions.list(scene.ada.id), trace).toEqual([])
    }
    expect(all.length).toBeGreaterThan(20)
  })
})

describe('writing verbs of one visit take turns', () => {
  it('two saves without a session make one, with both', async () => {
    for (const before of ['a dead session', 'a session', 'an anonymous session'])
      for (const { held, live, trace } of await ends(
        before,
        [visit => visit.update({ a: 1 }), visit => visit.update({ b: 2 })],
        { inOneVisit: true },
      )) {
        expect(held?.data, trace).toMatchObject({ a: 1, b: 2 })
        expect(live, trace).toEqual([held?.key])
      }
  })

  it('beside a login the browser ends up logged in, beside a logout logged out', async () => {
    const verbs = Object.entries(steps).filter(([name]) => !/login|logout|anonymous/.test(name))
    // Which of the two begins first is part of their order.
    for (const before of Object.keys(prepared))
      for (const [name, step] of verbs)
        for (const end of ['a login', 'a logout'])
          for (const { scene, held, trace, outcomes } of await ends(before, [step, steps[end]!], {
            inOneVisit: true,
            ...(LONG ? {} : { orders: { random: 4, seed: 20_261_124 } }),
          })) {
            const where = `${before}: ${name}, ${end}: ${trace}`
            expect(
              outcomes.map(({ status }) => status),
              where,
            ).toEqual(['fulfilled', 'fulfilled'])
            expect(held?.user?.id ?? null, where).toBe(end === 'a login' ? scene.max.id : null)
          }
  })

  it('all of them at once finish, and so does a get among them', async () => {
    for (const { outcomes, trace } of await ends(
      'a session and a remember token',
      [
        async visit => {
          const all = await Promise.allSettled([
            visit.update({ n: 1 }),
            visit.take('n'),
            visit.get(),
            visit.regenerate({ grace: '1m' }),
            visit.regenerate(),
            visit.create(),
            visit.csrfToken(),
            visit.logOut(),
            visit.update({ n: 2 }),
          ])
          return all.map(({ status }) => status)
        },
      ],
      { inOneVisit: true, orders: { all: 1 } },
    ))
      expect((outcomes[0] as PromiseFulfilledResult<string[]>).value, trace).toEqual(Array(9).fill('fulfilled'))
  })

  it('one that fails does not stop the next', async () => {
    for (const { outcomes, held } of await ends(
      'an anonymous session',
      [
        visit =>
          visit.update(() => {
            throw new RangeError('no')
          }),
        visit => visit.update({ n: 1 }),
      ],
      { inOneVisit: true },
    )) {
      expect(outcomes.map(({ status }) => status)).toEqual(['rejected', 'fulfilled'])
      expect(held?.data).toMatchObject({ n: 1 })
    }
  })
})

describe('a login that fails', () => {
  it.each(['since the store is down', 'since its user has too many sessions'])(
    '%s leaves the device its token',
    async why => {
      const options = why.includes('too many') ? { limit: { max: 1, onLimit: 'refuse' } as const } : {}
      for (const before of ['a remember token alone', 'a session that was never used, and its next token'])
        for (const { scene } of await ends(before, [], { orders: { all: 1 }, options })) {
          const { store, sessions, ada, max, clock } = scene
          await sessions.create({ user: max })
          const isDown = why.includes('down')
          for (const verb of ['create', 'replace'] as const) store.every(verb, isDown ? faults.rejects : null)
          await expect(steps['a login']!(scene.visit(), scene)).rejects.toMatchObject({
            code: isDown ? 'ERR_SESSION_STORE' : 'ERR_SESSION_LIMIT',
          })
          for (const verb of ['create', 'replace'] as const) store.every(verb, null)
          expect(await store.inner.listUser(`${ada.id}`, 'remember', { now: clock() })).toHaveLength(1)
          expect((await scene.visit().get())?.user?.id).toBe(ada.id)
        }
    },
  )
})

describe('parallel logins with one old ID', () => {
  const times = (count: number) => Array.from({ length: count }, (_, index) => index)
  it('20 of them are 20 sessions at most, and the browser has one of them', async () => {
    for (const before of ['an anonymous session', 'a session', 'a remember token alone', 'a dead session'])
      for (const { scene, live, held } of await ends(
        before,
        times(20).map(() => steps['a login']!),
        {
          orders: { random: 5, seed: 7 },
        },
      )) {
        expect(live).toContain(held?.key)
        expect(held?.user?.id).toBe(scene.max.id)
      }
  })

  const logInWith =
    (data?: object | ((before: any) => object)): Step =>
    (visit, { max }) =>
      visit.logIn({ user: max, ...(data && { data }) })

  // Cookies can be planted, and an attacker may know the ID before a step-up, and the password too.
  it.each<[string, Step]>([
    ['in its login', logInWith({ isSecondFactor: true })],
    [
      'after its login',
      async (visit, { max }) => {
        await visit.logIn({ user: max })
        return visit.update({ isSecondFactor: true })
      },
    ],
  ])('a password alone gets nothing of a session that proved more %s', async (_, stepUp) => {
    const carryAll = logInWith(before => before)
    for (const thief of [logInWith(), logInWith({}), carryAll])
      for (const { scene } of await ends('an anonymous session', [], { orders: { all: 1 } })) {
        const send = async (cookie: string, step: Step) => {
          const visit = scene.visit(cookie)
          await step(visit, scene)
          return visit.finish().headers.getSetCookie()[0]!.split(';')[0]!
        }
        const before = await send(scene.jar.header, logInWith())
        const stepped = await send(before, stepUp)
        const stolen = await send(before, thief)
        expect(stolen).not.toBe(stepped)
        expect((await scene.visit(stolen).get())?.data).toEqual({})
        expect((await scene.visit(stepped).get())?.data).toEqual({ isSecondFactor: true })
      }
  })

  it('whose client went away does not end the session that the other got', async () => {
    for (const answers of [2, 3, 4]) {
      let cookies = ''
      const prepare = async (scene: Scene) => {
        await prepared['an anonymous session']!(scene)
        cookies = scene.jar.header
      }
      const first: Step = (_, scene) => {
        let left = answers
        const canSend = () => {
          left -= 1
          return left >= 0
        }
        return scene.visit(cookies, { canSend }).logIn({ user: scene.max })
      }
      for (const { held, live, outcomes, trace } of await ends('', [first, steps['a login']!], { prepare })) {
        const where = `${answers}: ${outcomes.map(({ status }) => status)} ${trace}`
        expect(outcomes[1]?.status, where).toBe('fulfilled')
        expect(held, where).not.toBeNull()
        if (outcomes[0]?.status === 'rejected') expect(live, where).toEqual([held?.key])
      }
    }
  })

  it('a second login of one visit is a new ID all the same', async () => {
    for (const { outcomes, live } of await ends(
      'an anonymous session',
      [
        async (visit, { max }) => {
          const first = await visit.logIn({ user: max })
          const second = await visit.logIn({ user: max })
          return [first.key, second.key]
        },
      ],
      { inOneVisit: true },
    )) {
      const [first, second] = (outcomes[0] as PromiseFulfilledResult<string[]>).value
      expect(first).not.toBe(second)
      expect(live).toEqual([second])
    }
  })
})

it('a take leaves the visit with the session as it is then: one read, one write', async () => {
  for (const { scene } of await ends('an anonymous session', [], { orders: { all: 1 } })) {
    scene.store.reset()
    const visit = scene.visit()
    expect(await visit.take('cart')).toBe('tea')
    expect((await visit.get())?.data).toEqual({})
    expect(await visit.take('cart')).toBeUndefined()
    expect(scene.store.counts()).toEqual({ read: 1, update: 1 })
  }
})

it('a logout with an old ID costs few store calls, however many sessions a client began in its place', async () => {
  for (const { scene } of await ends('an anonymous session', [], { orders: { all: 1 } })) {
    const before = scene.jar.header
    for (let count = 0; count < 200; count += 1) await send(scene, visit => visit.create())
    scene.store.reset()
    await scene.visit(before).logOut()
    expect(scene.store.calls.length).toBeLessThanOrEqual(40)
  }
})
