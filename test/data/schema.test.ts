import { SessionManager, type StandardSchemaV1 } from 'coatcheck'
import { MemoryStore } from 'coatcheck/stores/memory'
import * as v from 'valibot'
import { describe, expect, it } from 'vitest'
import * as z from 'zod'
import { schemaOf, setUp } from '../support/manager-kit.ts'

type Cart = { items: string[]; theme: 'light' | 'dark' }
const schemas = {
  zod: z.object({ items: z.array(z.string()).default([]), theme: z.enum(['light', 'dark']).default('light') }),
  valibot: v.object({
    items: v.optional(v.array(v.string()), []),
    theme: v.optional(v.picklist(['light', 'dark']), 'light'),
  }),
} as unknown as Record<string, StandardSchemaV1<Partial<Cart>, Cart>>

describe.each(Object.entries(schemas))('a schema of %s', (_, schema) => {
  const withSchema = () => {
    const events: any[] = []
    const store = new MemoryStore()
    const sessions = new SessionManager({ store, schema, sweepInterval: false, onEvent: event => events.push(event) })
    const stored = async (data: string) => {
      const codec = { encode: () => data, decode: JSON.parse }
      return (await new SessionManager({ store, sweepInterval: false, codec }).create({ data: {} })).secret
    }
    return { sessions, events, stored }
  }

  it('fills in its defaults at the first data', async () => {
    const { sessions } = withSchema()
    expect((await sessions.create()).data).toEqual({ items: [], theme: 'light' })
    expect((await sessions.create({ data: { theme: 'dark' } })).data).toEqual({ items: [], theme: 'dark' })
    const { secret } = await sessions.create({ user: { id: 1, name: 'ada' } })
    expect((await sessions.get(secret))?.data).toEqual({ items: [], theme: 'light' })
  })

  it('refuses a wrong value with its path, and the old data stays', async () => {
    const { sessions } = withSchema()
    const session = await sessions.create({ data: { items: ['book'] } })
    const error = { code: 'ERR_SESSION_DATA', message: expect.stringMatching(/^data\.(theme|items\.1): /) }
    await expect(sessions.create({ data: { theme: 'blue' as never } })).rejects.toMatchObject(error)
    await expect(sessions.update(session, { theme: 'blue' as never })).rejects.toMatchObject(error)
    await expect(sessions.update(session, draft => void draft.items.push(7 as never))).rejects.toMatchObject(error)
    expect((await sessions.get(session))?.data).toEqual({ items: ['book'], theme: 'light' })
  })

  it('completes data of an older version from its defaults', async () => {
    const { sessions, events, stored } = withSchema()
    const secret = await stored('{"items":["book"]}')
    expect((await sessions.get(secret))?.data).toEqual({ items: ['book'], theme: 'light' })
    expect(events).toEqual([])
  })

  it.each(['{"items":"book"}', '{"theme":"blue"}', '[]', 'null', '7', 'no JSON', ''])(
    'starts anew where stored data %o does not fit, says so, and keeps the session',
    async text => {
      const { sessions, events, stored } = withSchema()
      const session = await sessions.get(await stored(text))
      expect(session?.data).toEqual({ items: [], theme: 'light' })
      expect(events).toMatchObject([{ type: 'data-reset', key: session?.key, cause: expect.any(Error) }])
      const updated = await sessions.update(session!, { theme: 'dark' })
      expect(updated?.data).toEqual({ items: [], theme: 'dark' })
      events.length = 0
      expect((await sessions.get(session))?.data).toEqual({ items: [], theme: 'dark' })
      expect(events).toEqual([])
    },
  )

  it("one session's draft never reaches another session through a default", async () => {
    const { sessions } = withSchema()
    const [a, b] = [await sessions.create(), await sessions.create()]
    await sessions.update(a, draft => void draft.items.push('secret of a'))
    await sessions.take(a, 'items')
    expect((await sessions.update(b, { theme: 'dark' }))?.data.items).toEqual([])
    expect((await sessions.create()).data.items).toEqual([])
    expect((await sessions.get(a))?.data.items).toEqual([])
  })

  it('a taken key goes back to its default', async () => {
    const { sessions } = withSchema()
    const session = await sessions.create({ data: { items: ['book'] } })
    expect(await sessions.take(session, 'items')).toEqual(['book'])
    expect(await sessions.take(session, 'items')).toEqual([])
    expect((await sessions.get(session))?.data).toEqual({ items: [], theme: 'light' })
  })
})

describe('initial', () => {
  it('is called for each session, and what it returns stays its own', async () => {
    const constant = { count: 0, list: [] as string[], inner: { flag: false } }
    const store = new MemoryStore()
    const sessions = new SessionManager({ store, initial: () => constant, sweepInterval: false })
    const a = await sessions.create()
    expect(a.data).toEqual({ count: 0, list: [], inner: { flag: false } })
    const { secret } = await new SessionManager({ store, sweepInterval: false }).create()
    const b = (await sessions.get(secret))!
    expect(b.data.inner.flag).toBe(false)
    expect([constant, constant.list, constant.inner].map(part => Object.isFrozen(part))).toEqual([false, false, false])
    await sessions.update(b, draft => {
      draft.list.push('private')
      draft.inner.flag = true
    })
    expect(constant).toEqual({ count: 0, list: [], inner: { flag: false } })
    expect((await sessions.create()).data).toEqual(constant)
  })

  it('completes data from before a key existed, and a key set to undefined starts anew', async () => {
    const sessions = new SessionManager({
      store: new MemoryStore(),
      initial: () => ({ a: 1, b: 2 }),
      sweepInterval: false,
    })
    const session = await sessions.create({ data: { a: 5 } })
    expect(session.data).toEqual({ a: 5, b: 2 })
    expect((await sessions.update(session, { a: undefined } as never))?.data).toEqual({ a: 1, b: 2 })
  })

  it.each([[undefined], [null], [7], ['x'], [[1]], [Promise.resolve({})]])(
    'that returns %o is an error',
    async wrong => {
      const build = () =>
        new SessionManager({ store: new MemoryStore(), initial: () => wrong as never, sweepInterval: false })
      await expect((async () => (await build()).create())()).rejects.toThrow(
        /^initial: expected it to return an object, got /,
      )
    },
  )
})

describe('a schema that cannot work', () => {
  it('an asynchronous one is a TypeError at once', () => {
    const schemas = [
      z.object({
        a: z
          .string()
          .default('x')
          .refine(async () => true),
      }),
      v.pipeAsync(
        v.object({}),
        v.checkAsync(async () => true),
      ),
    ]
    for (const schema of schemas)
      expect(() => new SessionManager({ store: new MemoryStore(), schema: schema as never })).toThrow(TypeError)
  })

  it('one that becomes asynchronous later is an error, not stored data', async () => {
    let isAsync = false
    const schema = schemaOf(value =>
      isAsync ? Promise.resolve({ value: value as object }) : { value: value as object },
    )
    const { sessions } = setUp({ schema })
    const session = await sessions.create({ data: { a: 1 } })
    isAsync = true
    await expect(sessions.update(session, { a: 2 })).rejects.toThrow(/^schema: validates asynchronously/)
    isAsync = false
    expect((await sessions.get(session))?.data).toEqual({ a: 1 })
  })

  it('one that refuses its own output is an error at the write, so that no data is lost at the next read', async () => {
    const schema = z.object({
      name: z
        .string()
        .transform(name => name.length)
        .optional(),
    })
    const { sessions } = setUp({ schema })
    const session = await sessions.create()
    const attempt = sessions.update(session, { name: 'ada' as never })
    await expect(attempt).rejects.toThrow(TypeError)
    await expect(attempt).rejects.toThrow(/^schema: it must accept its own output: data\.name: /)
    expect((await sessions.get(session))?.data).toEqual({})
  })

  it('one that does not describe an object is a TypeError', () => {
    const schema = z.unknown().transform(() => 'text')
    expect(() => new SessionManager({ store: new MemoryStore(), schema: schema as never })).toThrow(
      'schema: expected it to describe an object, got "text"',
    )
  })

  it('one that throws is not a logout', async () => {
    let breaks = false
    const schema = schemaOf(value => {
      if (breaks) throw new Error('bug in a refinement')
      return { value: value as object }
    })
    const { sessions } = setUp({ schema })
    const session = await sessions.create({ data: { a: 1 } })
    breaks = true
    await expect(sessions.update(session, { a: 2 })).rejects.toThrow('bug in a refinement')
    expect(await sessions.get(session)).not.toBeNull()
  })
})

describe('session data that is shown', () => {
  it('is decoded at the first look, not before', async () => {
    let decoded = 0
    const codec = {
      encode: JSON.stringify as (data: unknown) => string,
      decode: (text: string) => {
        decoded += 1
        return JSON.parse(text) as unknown
      },
    }
    const { sessions } = setUp({ codec })
    const { secret } = await sessions.create({ data: { a: 1 } })
    const session = (await sessions.get(secret))!
    expect(decoded).toBe(0)
    expect([session.data.a, session.data.a]).toEqual([1, 1])
    expect(decoded).toBe(1)
  })
})

it.each(['secret', 'key', 'user', 'csrfToken', 'data', 'then', 'toJSON_', 'hasOwnProperty', 'toString'])(
  'a data key named %s shadows nothing',
  async name => {
    const { sessions } = setUp()
    const session = await sessions.create({ user: { id: 1, name: 'ada' }, data: { [name]: 'mine' } })
    const found = (await sessions.get(session.secret))!
    expect(found.data[name]).toBe('mine')
    expect([found.secret, found.key, found.user]).toEqual([session.secret, session.key, { id: 1n, name: 'ada' }])
    expect(await sessions.take(found, name)).toBe('mine')
    expect((await sessions.get(session))?.data).toEqual({})
  },
)

it('a codec of the application writes and reads the data', async () => {
  const codec = {
    encode: (data: unknown) => `v1:${Buffer.from(JSON.stringify(data)).toString('hex')}`,
    decode: (text: string) => JSON.parse(Buffer.from(text.slice(3), 'hex').toString()) as unknown,
  }
  const { sessions, store, manager } = setUp({ codec })
  const session = await sessions.create({ data: { a: 'ä' } })
  expect(await store.inner.read(session.key, { now: 0 })).toMatchObject({ data: codec.encode({ a: 'ä' }) })
  expect((await manager().get(session.secret))?.data).toEqual({ a: 'ä' })
})
