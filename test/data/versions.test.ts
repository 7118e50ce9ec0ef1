// During a deployment two versions of an application write the same sessions, each with its own schema.
import { SessionManager } from 'coatcheck'
import { MemoryStore } from 'coatcheck/stores/memory'
import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import * as z from 'zod'
import { schemaOf } from '../support/manager-kit.ts'

const user = { id: 1, name: 'ada' }

/** Two managers, an old and a new version, over one store, and what they tell. */
function nodes(before: object, after: object, options: object = {}) {
  const store = new MemoryStore()
  const events: any[] = []
  const node = (schema: object) =>
    new SessionManager<any>({
      store,
      schema: schema as never,
      sweepInterval: false,
      onEvent: event => void (event.type === 'data-reset' && events.push(event)),
      ...options,
    })
  return { old: node(before), young: node(after), events, stored: new SessionManager({ store, sweepInterval: false }) }
}

const cart = z.array(z.string()).default([])
const theme = z.string().default('light')
const v1 = z.object({ cart, theme, legacy: z.string().optional() })
const v2 = z.object({ cart, theme, locale: z.string().default('en'), seen: z.array(z.number()).optional() })

describe('a write of an older version keeps what a newer one has stored', () => {
  it('where the older schema needs its start value to read it', async () => {
    const { old, young } = nodes(z.object({ theme: z.string() }), z.object({ theme, locale: z.string() }), {
      initial: () => ({ theme: 'light', locale: 'en' }),
    })
    const { secret } = await young.create({ user, data: { locale: 'fr' } })
    await young.update((await young.get(secret))!, { theme: undefined })
    await old.update((await old.get(secret))!, { theme: 'dark' })
    expect((await young.get(secret))?.data).toEqual({ theme: 'dark', locale: 'fr' })
  })

  it('also under a new ID', async () => {
    const { old, young } = nodes(v1, v2)
    const { secret } = await young.create({ user, data: { locale: 'fr' } })
    const next = await old.regenerate(secret, { grace: '10s' })
    await old.update(next!, { theme: 'dark' })
    expect((await young.get(next!.secret))?.data).toMatchObject({ theme: 'dark', locale: 'fr' })
  })
})

describe('a write changes the keys that it names, or that its function changed', () => {
  const narrow = z.object({ theme: z.enum(['light', 'dark']).catch('light'), cart })

  it('and no other: a value that this version shows as another one stays as it is stored', async () => {
    const { old, young } = nodes(narrow, v2)
    const { secret } = await young.create({ user, data: { theme: 'auto' } })
    expect((await old.get(secret))?.data.theme).toBe('light')
    await old.update((await old.get(secret))!, { cart: ['coat'] })
    await old.update((await old.get(secret))!, draft => void draft.cart.push('hat'))
    expect((await young.get(secret))?.data).toMatchObject({ theme: 'auto', cart: ['coat', 'hat'] })
  })

  it('even to the value that was shown before', async () => {
    const { old, young } = nodes(narrow, v2)
    const { secret } = await young.create({ user, data: { theme: 'auto' } })
    await old.update((await old.get(secret))!, { theme: 'light' })
    expect((await young.get(secret))?.data.theme).toBe('light')
  })

  it('and undefined, delete and take remove those that this version knows', async () => {
    const options = z.object({ a: z.number().optional(), b: z.number().optional(), c: z.number().optional() })
    const { old, stored } = nodes(options, v2)
    const { secret } = await old.create({ user, data: { a: 1, b: 2, c: 3 } })
    await stored.update((await stored.get(secret))!, { other: 4 })
    await old.update((await old.get(secret))!, { a: undefined, other: undefined })
    await old.update((await old.get(secret))!, draft => {
      delete draft.b
      delete draft.other
    })
    expect(await old.take((await old.get(secret))!, 'c')).toBe(3)
    expect((await stored.get(secret))?.data).toEqual({ other: 4 })
  })

  it('and is read as it was written where the schema gives a key another name', async () => {
    const renamed = z.preprocess(
      (data: any) => ('language' in data ? { locale: data.language } : data),
      z.object({ locale: z.string().default('en') }),
    )
    const { old, young } = nodes(z.object({ language: z.string().default('en') }), renamed)
    const { secret } = await old.create({ user, data: { language: 'fr' } })
    const session = (await young.get(secret))!
    expect(session.data).toEqual({ locale: 'fr' })
    expect((await young.update(session, { locale: 'de' }))?.data).toEqual({ locale: 'de' })
    expect((await young.get(secret))?.data).toEqual({ locale: 'de' })
  })

  it('and what counts for maxDataBytes is all that is stored', async () => {
    const { old, young } = nodes(v1, v2, { maxDataBytes: 200 })
    const { secret } = await young.create({ user, data: { locale: 'x'.repeat(120) } })
    const tooMuch = old.update((await old.get(secret))!, { theme: 'y'.repeat(60) })
    await expect(tooMuch).rejects.toMatchObject({ code: 'ERR_SESSION_DATA' })
  })
})

it('data that this version refuses is reset as a whole', async () => {
  const { old, young, events } = nodes(
    v1,
    z.object({ theme: z.object({ name: z.string() }).optional(), locale: theme }),
  )
  const { secret } = await young.create({ user, data: { theme: { name: 'dark' }, locale: 'fr' } })
  await old.update((await old.get(secret))!, { cart: ['coat'] })
  expect(events).not.toEqual([])
  expect((await old.get(secret))?.data).toEqual({ cart: ['coat'], theme: 'light' })
})

it('a login starts fresh, whatever another version has stored', async () => {
  const { old, young, stored } = nodes(v1, v2)
  const { secret } = await young.create({ data: { locale: 'fr', theme: 'dark' } })
  const next = await old.logIn(secret, { user, data: before => ({ theme: before.theme }) })
  expect((await stored.get(next.secret))?.data).toEqual({ cart: [], theme: 'dark' })
})

it('a schema that returns instances of a class goes on as it was', async () => {
  class Data {
    n = 0
  }
  const schema = schemaOf((value: any) => ({ value: Object.assign(new Data(), { n: value.n ?? 0 }) }))
  const codec = {
    encode: (data: unknown) => JSON.stringify([data instanceof Data, data]),
    decode: (text: string) => (JSON.parse(text) as unknown[])[1],
  }
  const { old } = nodes(schema, schema, { codec })
  const session = await old.create({ data: { n: 1 } })
  expect((await old.update(session, { n: 2 }))?.data).toMatchObject({ n: 2 })
})

it('two versions that write in turns lose nothing of each other', async () => {
  const keys = { old: ['cart', 'theme', 'legacy'], young: ['cart', 'theme', 'locale', 'seen'] }
  const start: Record<string, unknown> = { cart: [], theme: 'light', locale: 'en' }
  const lists = {
    cart: fc.array(fc.string({ maxLength: 3 }), { maxLength: 2 }),
    seen: fc.array(fc.nat(9), { maxLength: 2 }),
  }
  const step = fc.constantFrom<'old' | 'young'>('old', 'young').chain(by =>
    fc.constantFrom(...keys[by]).chain(key =>
      fc.record({
        by: fc.constant(by),
        key: fc.constant(key),
        value: (lists as Record<string, fc.Arbitrary<unknown>>)[key] ?? fc.string({ maxLength: 3 }),
        how: fc.constantFrom('patch', 'function', 'all', 'take', 'undefined', 'delete'),
      }),
    ),
  )
  const turns = fc.asyncProperty(fc.array(step, { maxLength: 12 }), async steps => {
    const both = nodes(v1, v2)
    const { secret } = await both.old.create({ user })
    const model: Record<string, unknown> = { ...start }
    for (const { by, key, value, how } of steps) {
      const node = both[by]
      const session = (await node.get(secret))!
      if (how === 'patch') await node.update(session, { [key]: value })
      else if (how === 'function')
        await node.update(session, draft => {
          draft[key] = value
        })
      else if (how === 'all') await node.updateUserSessions(1, { [key]: value })
      else if (how === 'take') expect(await node.take(session, key)).toEqual(model[key])
      else if (how === 'undefined') await node.update(session, { [key]: undefined })
      else
        await node.update(session, draft => {
          delete draft[key]
        })
      model[key] = ['patch', 'function', 'all'].includes(how) ? value : start[key]
      for (const version of ['old', 'young'] as const) {
        const known = Object.fromEntries(keys[version].map(name => [name, model[name]]))
        expect((await both[version].get(secret))?.data).toEqual(known)
      }
    }
    expect(both.events).toEqual([])
  })
  await fc.assert(turns, { numRuns: 150 })
})
