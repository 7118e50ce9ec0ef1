// The example service in this process, so that a test can hold the clock and break the store, with passwords that are cheap to try.
import { SessionManager, type Store } from 'coatcheck'
import { MemoryStore } from 'coatcheck/stores/memory'
import { expect } from 'vitest'
import { createApp } from '../../examples/server/app.mjs'
import { openUsers } from '../../examples/server/users.mjs'
import { CHEAP, Client, PASSWORD } from '../support/example-service.ts'
import { listening } from '../support/listening.ts'

export type InProcess = Awaited<ReturnType<typeof openService>>

export async function openService() {
  const at = {
    /** How far the clock is ahead, in ms. */
    later: 0,
    /** Runs before a store call; what it throws, the store throws. */
    fault: null as ((method: string) => unknown) | null,
  }
  const store = new Proxy<Store>(new MemoryStore(), {
    get(target, name: keyof Store) {
      const method = target[name]
      if (typeof method !== 'function') return method
      if (name === 'shard' || name === 'close') return method.bind(target)
      return async (...all: never[]) => {
        await at.fault?.(name)
        return (method as (...all: never[]) => unknown).apply(target, all)
      }
    },
  })
  const begun = Date.now()
  const now = () => begun + at.later
  const sessions = new SessionManager({
    store,
    initial: () => ({ label: '' }),
    rememberFor: '30d',
    // A test machine may stand still for a second.
    storeTimeout: '30s',
    now,
    sweepInterval: false,
  })
  const { url, close } = await listening(createApp({ sessions, users: await openUsers(CHEAP) }))
  return {
    at,
    now,
    url,
    sessions,
    client: (agent?: string) => new Client(url, agent),
    async loggedIn(agent?: string, remember?: boolean, name = 'ada') {
      const browser = new Client(url, agent)
      expect((await browser.login(name, PASSWORD, remember)).status).toBe(200)
      return browser
    },
    stop: close,
  }
}
