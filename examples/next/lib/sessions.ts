import { SessionManager } from 'coatcheck'
import { fetchVisits } from 'coatcheck/fetch'
import { nextVisits } from 'coatcheck/next'
import { MemoryStore } from 'coatcheck/stores/memory'
import { cookies, headers } from 'next/headers'

const open = () =>
  new SessionManager({
    store: new MemoryStore(),
    userIds: 'string',
    rememberFor: '30d',
    initial: () => ({ cart: {} as Record<string, number>, hint: '' }),
  })

// Next loads this file once for each of its bundles, and again after each edit: all of them share one manager.
const kept = globalThis as { sessions?: ReturnType<typeof open> }
kept.sessions ??= open()

export const visits = nextVisits(fetchVisits(kept.sessions), { headers, cookies })
