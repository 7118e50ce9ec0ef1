// Old sessions are imported once on each kind of database: the notes are records without a user, and the IDs are derived.
import { expect, it, onTestFinished } from 'vitest'
import { connectSid, cookieAt, replacement } from '../support/old-sessions.ts'
import { onRealStores } from '../support/real-stores.ts'

onRealStores(
  store => `sessions of another library that move to ${store}`,
  open => {
    it('are imported once by parallel requests on three nodes, and a logout is final', async () => {
      const service = replacement(open())
      onTestFinished(service.close)
      const nodes = [1, 2, 3].map(() => service.node({ manager: { storeTimeout: '20s' } }))
      const users = Array.from({ length: 4 }, (_, at) => 2n ** 64n - 1n - BigInt(at))
      for (const id of users)
        service.old.put(`sid ${id}`, { cookie: cookieAt(service.clock.now), userId: String(id), name: `user ${id}` })
      const asked = users.flatMap(id => nodes.map(node => node.ask(connectSid(`sid ${id}`))))
      const names = (await Promise.all(asked)).map(answer => answer.name)
      expect(names).toEqual(users.flatMap(id => nodes.map(() => `user ${id}`)))
      const { sessions } = nodes[0]!
      for (const id of users) expect(await sessions.list(id)).toHaveLength(1)
      expect(await sessions.count()).toBe(users.length)
      // A late request with the old cookie beside and after the logout.
      const [gone, stays] = users
      const leaving = await nodes[1]!.ask(connectSid(`sid ${gone}`))
      await leaving.visit.logOut()
      for (const node of nodes) expect((await node.ask(connectSid(`sid ${gone}`))).name).toBe(null)
      expect(await sessions.list(gone!)).toEqual([])
      expect(await sessions.list(stays!)).toHaveLength(1)
      expect(service.told).toEqual([])
    })
  },
)
