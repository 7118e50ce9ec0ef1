import { SessionManager } from 'coatcheck'
import { MemoryStore } from 'coatcheck/stores/memory'
import { expect, it } from 'vitest'
import { Endings } from '../../src/manager/endings.ts'
import { recordOf } from '../../src/session/session.ts'

it('a successor that is told of after the end of its session ends too, with all that follow', () => {
  const endings = new Endings()
  endings.moved('b', 'c')
  endings.end('a', 'left')
  endings.moved('a', 'b')
  expect(['a', 'b', 'c'].map(key => endings.isOver(key))).toEqual([true, true, true])
})

it('what began in the place of a session is named when that one ends, and begins no more afterwards', () => {
  const endings = new Endings()
  expect(endings.began('a', 'u')).toBe(true)
  expect(endings.end('a', 'left')).toEqual(['u'])
  expect(endings.began('a', 'v')).toBe(false)
  expect([endings.isOver('u'), endings.isOver('v')]).toEqual([true, true])
  endings.end('r', 'ended')
  expect(endings.began('r', 'w')).toBe(true)
  expect(endings.isOver('w')).toBe(false)
})

it('the cookie of a session is held back when its remember-me series ended', async () => {
  const sessions = new SessionManager({ store: new MemoryStore(), remember: '30d', sweepInterval: false })
  const token = await sessions.remember(await sessions.create({ user: { id: 1, name: 'ada' } }))
  const { session } = (await sessions.recall(token))!
  const endings = new Endings()
  expect(endings.has(session)).toBe(false)
  endings.end(recordOf(session)!.parent!, 'left')
  expect(endings.has(session)).toBe(true)
})
