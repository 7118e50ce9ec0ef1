// What a caller holds may end between the look and the write.
import { SessionManager, SessionStoreError } from 'coatcheck'
import { MemoryStore } from 'coatcheck/stores/memory'
import { describe, expect, it } from 'vitest'

const ada = { user: { id: 1, name: 'Ada' } }
const eve = { user: { id: 2, name: 'Eve' } }

describe('a login over a remembered session that got a new ID a moment ago', () => {
  async function remembered() {
    const sessions = new SessionManager({ store: new MemoryStore(), rememberFor: '30d' })
    const first = await sessions.create(ada)
    const redeemed = await sessions.redeemRememberToken(await sessions.issueRememberToken(first))
    return { sessions, session: redeemed!.session, token: redeemed!.token }
  }

  it.each(['the session', 'its ID'])('ends the remember token that began it, given %s', async given => {
    const { sessions, session, token } = await remembered()
    const next = await sessions.regenerate(session)
    const login = await sessions.logIn(given === 'its ID' ? session.secret : session, eve)
    expect(await sessions.redeemRememberToken(token)).toBeNull()
    expect(await sessions.get(next)).toBeNull()
    expect((await sessions.get(login))?.user).toEqual({ id: 2n, name: 'Eve' })
  })
})

describe('a session that the store calls gone when its use is written down', () => {
  /** Answers 'gone' to a touch, and fails afterwards. */
  class EndingStore extends MemoryStore {
    isFailing = false

    override async touch(...args: Parameters<MemoryStore['touch']>) {
      await this.delete(args[0], args[3])
      this.isFailing = true
      return super.touch(...args)
    }

    override read(...args: Parameters<MemoryStore['read']>) {
      if (this.isFailing) throw new Error('connection lost')
      return super.read(...args)
    }
  }

  it('is a failure, and no session, if the store then cannot say what became of it', async () => {
    let now = Date.now()
    const sessions = new SessionManager({ store: new EndingStore(), now: () => now })
    const session = await sessions.create(ada)
    now += 600_000
    await expect(sessions.get(session.secret)).rejects.toThrow(SessionStoreError)
  })
})
