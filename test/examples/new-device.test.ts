// examples/new-device.mjs behind a server.
import { afterAll, beforeEach, expect, it } from 'vitest'
import { isNewDevice } from '../../examples/new-device.mjs'
import { listening } from '../support/listening.ts'

const rows = new Map<string, string[]>()
const devices = {
  of: async (userId: bigint | string) => rows.get(`${userId}`) ?? [],
  save: async (userId: bigint | string, known: string[]) => rows.set(`${userId}`, known),
}
const { url, close } = await listening(async (request, response) => {
  const isNew = await isNewDevice(request, response, BigInt(request.url!.slice(1)), devices)
  response.end(JSON.stringify(isNew))
})
afterAll(close)
beforeEach(() => rows.clear())

class Browser {
  cookie = ''
  async logIn(userId: bigint): Promise<boolean> {
    const response = await fetch(`${url}/${userId}`, { headers: { Cookie: this.cookie } })
    this.cookie = response.headers.getSetCookie()[0]!.split(';')[0]!
    return response.json() as Promise<boolean>
  }
}

it('tells a browser that is new to this user, but not the first one, nor one that is known', async () => {
  const [laptop, phone] = [new Browser(), new Browser()]
  expect(await laptop.logIn(42n)).toBe(false)
  expect(await phone.logIn(42n)).toBe(true)
  for (const browser of [laptop, phone]) expect(await browser.logIn(42n)).toBe(false)
  // Somebody else at the same laptop.
  const own = new Browser()
  expect(await own.logIn(7n)).toBe(false)
  expect(await laptop.logIn(7n)).toBe(true)
})

it('keeps hashes that say nothing of the cookie or of another user, of 20 browsers at most', async () => {
  const first = new Browser()
  await first.logIn(42n)
  await first.logIn(7n)
  const id = first.cookie.replace('device_id=', '')
  expect(JSON.stringify([...rows])).not.toContain(id)
  expect(rows.get('42')).not.toEqual(rows.get('7'))
  for (let count = 0; count < 19; count += 1) expect(await new Browser().logIn(42n)).toBe(true)
  expect(await first.logIn(42n)).toBe(false)
  const latest = new Browser()
  for (const isNew of [true, false]) expect(await latest.logIn(42n)).toBe(isNew)
  expect(rows.get('42')).toHaveLength(20)
  expect(await first.logIn(42n)).toBe(false)
})

it('takes a cookie that is not one of ours for none', async () => {
  const thief = Object.assign(new Browser(), { cookie: 'device_id=short; other_device_id=AAAAAAAAAAAAAAAAAAAAAA' })
  await thief.logIn(42n)
  expect(thief.cookie).toMatch(/^device_id=[\w-]{22}$/)
  expect(thief.cookie).not.toContain('AAAAAA')
})
