// The guarantees as a user of the manager sees them, for any store: one line in a store's test file runs them all.
import type { Store } from 'coatcheck'
import { type Backend, guaranteeKit } from '../support/guarantee-kit.ts'
import { boundToTheDevice } from './bound-to-the-device.ts'
import { chainsAreBounded } from './chains-are-bounded.ts'
import { destroyedStaysDestroyed } from './g1-destroyed-stays-destroyed.ts'
import { noLostUpdate } from './g2-no-lost-update.ts'
import { endAllIsComplete } from './g3-invalidate-all.ts'
import { logOutEverywhereIsComplete } from './g3-logout-everywhere.ts'
import { newIdAtLogin } from './g4-new-id-at-login.ts'
import { onlyHashesAtRest } from './g5-only-hashes-at-rest.ts'
import { bothClocksHold } from './g6-both-clocks-hold.ts'
import { anOutageIsNotALogOut } from './g7-an-outage-is-not-a-logout.ts'
import { anonymousTrafficWritesNothing } from './g8-anonymous-traffic-writes-nothing.ts'
import { oneStoreCommand } from './g9-one-store-command.ts'
import { sessionsOfOneUser } from './sessions-of-one-user.ts'

/**
 * Runs all guarantees against a store; `open` is called once for each test and may answer the same store. `backend` is
 * the database behind it, where there is one.
 */
export function testGuarantees(open: () => Store | Promise<Store>, backend: Backend = {}): void {
  const kit = guaranteeKit(open, backend)
  destroyedStaysDestroyed(kit)
  noLostUpdate(kit)
  logOutEverywhereIsComplete(kit)
  endAllIsComplete(kit)
  newIdAtLogin(kit)
  chainsAreBounded(kit)
  onlyHashesAtRest(kit)
  bothClocksHold(kit)
  sessionsOfOneUser(kit)
  anOutageIsNotALogOut(kit)
  anonymousTrafficWritesNothing(kit)
  oneStoreCommand(kit)
  boundToTheDevice(kit)
}
