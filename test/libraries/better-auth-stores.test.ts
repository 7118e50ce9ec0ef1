// better-auth's storage on every kind of database: late writes, parallel logins, and keys that are no sessions.
import { secondaryStorage } from 'coatcheck/better-auth'
import { expect, it } from 'vitest'
import { onRealStores } from '../support/real-stores.ts'
import { betterAuthOver } from './better-auth.ts'

const ROUNDS = Number(process.env.COATCHECK_ROUNDS ?? 5)
// Beside whatever else this machine does.
const TIMEOUT = 240_000 + 1000 * ROUNDS

onRealStores(
  store => `better-auth on ${store}`,
  open => {
    it(
      'keeps ended sessions ended, and lists parallel logins',
      async () => {
        const { revivals, parallelLogins, lostList, lateLogin } = betterAuthOver(secondaryStorage(open()))
        const undone = { revived: 0, lost: 0, outlived: 0 }
        for (let round = 0; round < ROUNDS; round += 1) {
          for (const revival of Object.values(revivals)) if ((await revival()) !== null) undone.revived += 1
          undone.lost += await parallelLogins(3)
          undone.outlived += (await lostList()) + Number(await lateLogin())
        }
        expect(undone).toEqual({ revived: 0, lost: 0, outlived: 0 })
      },
      TIMEOUT,
    )

    it('counts exactly, gives a value away once, and takes any text', async () => {
      const [one, two] = [secondaryStorage(open()), secondaryStorage(open())]
      const counts = Array.from({ length: 30 }, (_, at) => [one, two][at % 2]!.increment('ip|/path', 60))
      expect((await Promise.all(counts)).sort((a, b) => a - b)).toEqual(Array.from({ length: 30 }, (_, at) => at + 1))
      const text = '\0\ud800"é'.repeat(3000)
      await one.set('verification:a', text, 60)
      expect(await two.get('verification:a')).toBe(text)
      const taken = await Promise.all(
        Array.from({ length: 10 }, (_, at) => [one, two][at % 2]!.getAndDelete('verification:a')),
      )
      expect(taken.filter(value => value !== null)).toEqual([text])
      await one.set('brief', 'x', 0)
      expect(await two.get('brief')).toBeNull()
      await two.set('brief', 'y', 60)
      expect(await one.get('brief'), 'free at once').toBe('y')
    })
  },
)
