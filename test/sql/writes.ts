// The writes of a store by their names, each of a stored session `one` or of another one that is not stored.
import type { Store } from 'coatcheck'
import type { SessionRecord } from 'coatcheck/custom-store'
import { anonymous, call, change, everybody, forward, NOW } from './records.ts'

export type Write = (
  store: Store,
  one: SessionRecord,
  other: SessionRecord,
  when?: ReturnType<typeof call>,
) => Promise<unknown>

/** Those that make a session live come too late one day; those that end one never do. */
export const LATE: Record<string, Write> = {
  update: (store, one, _, when = call()) => store.update(one.key, 1, change(), when),
  login: (store, _, other, when = call()) => store.create(other, when),
  'new anonymous session': (store, _, { key }, when = call()) => store.create(anonymous({ key }), when),
  'new ID': (store, one, other, when = call()) => store.replace(one.key, 1, other, {}, when),
  'new ID with a forward': (store, one, other, when = call()) => store.replace(one.key, 1, other, { forward }, when),
}
export const WHENEVER: Record<string, Write> = {
  touch: (store, one, _, when = call()) => store.touch(one.key, NOW + 5, NOW + 9e6, when),
  logout: (store, one, _, when = call()) => store.delete(one.key, when),
  'logout everywhere': (store, one, _, when = call()) => store.deleteUser(one.userId!, everybody, when),
}
