// All records of one user: found by the user's index, read and ended in pieces, so that no command holds the server up
// for long.
import { type DeleteUserOptions, SWEEP_MARGIN } from '../../src/contract/store.ts'
import type { Call } from './commands.ts'
import { decode, escaped, text } from './format.ts'
import { type Keys, memberOf, shardOf, shardOfKey } from './keys.ts'
import { refusalOf } from './refusals.ts'
import { DELETE_USER, PAGE } from './scripts.ts'

/** How many of a user's sessions one script ends. */
export const CHUNK = 250
/** How many records one command reads. */
const COLLECT = 500

/** The items in parts of at most this size. */
export function chunks<T>(items: readonly T[], size: number): T[][] {
  const parts: T[][] = []
  for (let i = 0; i < items.length; i += size) parts.push(items.slice(i, i + size))
  return parts
}

/** The records of a user, as the user's index names them. */
export class UserIndex {
  readonly #keys: Keys

  constructor(keys: Keys) {
    this.#keys = keys
  }

  /**
   * Answers a function that runs DELETE_USER over some members of the index. A forward never changes: where the one from
   * the excepted session leads is asked once for all runs.
   */
  ending(
    call: Call,
    userId: string,
    {
      now,
      exceptKey,
      minPasswordVersion: passwordVersion,
      minPasswordVersionUntil,
    }: DeleteUserOptions & { readonly now: number },
  ) {
    const shard = shardOf(userId)
    const spared = exceptKey !== undefined && shardOfKey(exceptKey) === shard ? [exceptKey] : []
    return async (extent: 'all' | 'part', members: readonly string[]): Promise<[string, ...unknown[]]> => {
      for (;;) {
        const known = spared.length
        const answer = await call.run(DELETE_USER, {
          shard,
          keys: [
            this.#keys.index(userId),
            this.#keys.floor(userId),
            ...spared.map(this.#keys.session),
            ...members.map(member => this.#keys.session(shard + member)),
          ],
          now,
          args: [escaped(userId), known, extent, passwordVersion ?? '', minPasswordVersionUntil, SWEEP_MARGIN],
          acknowledged: extent === 'all',
        })
        if (answer[0] !== 'follow') return answer
        if (spared.length === known) spared.push(text(answer[1]))
      }
    }
  }

  /**
   * All that the index names, page by page, with the record that is stored there; `null` where there is none. A record
   * that gets a new ID meanwhile is among them, under one of its keys.
   */
  async *records(call: Call, userId: string) {
    const shard = shardOf(userId)
    const index = this.#keys.index(userId)
    const seen = new Set<string>()
    // By score: a rank would skip members where others leave meanwhile.
    for (let [from, skipped] = ['-inf', 0]; ; ) {
      const answer = await call
        .read(shard, ['ZRANGE', index, from, '+inf', 'BYSCORE', 'LIMIT', `${skipped}`, `${PAGE}`, 'WITHSCORES'])
        .catch(error => {
          if (refusalOf(error) === 'WRONGTYPE') return []
          throw error
        })
      if (!Array.isArray(answer)) throw new Error('the answer of ZRANGE was not understood')
      // RESP3 answers pairs.
      const flat = answer.flat() as unknown[]
      const keys: string[] = []
      for (let i = 0; i < flat.length; i += 2) {
        const member = text(flat[i])
        if (!seen.has(member)) keys.push(shard + member)
        seen.add(member)
      }
      // A record that got a new ID after the index was read stands where the forward leads: under a key of the same user.
      for (let asked: readonly string[] = keys; asked.length > 0; ) {
        const page = await this.#stored(call, shard, asked)
        asked = page.flatMap(({ movedTo }) => (movedTo === null || seen.has(memberOf(movedTo)) ? [] : movedTo))
        for (const key of asked) seen.add(memberOf(key))
        yield page
      }
      if (flat.length < 2 * PAGE) return
      const last = text(flat.at(-1))
      skipped = last === from ? skipped + PAGE : 0
      from = last
    }
  }

  async #values(call: Call, shard: string, keys: readonly string[]): Promise<readonly unknown[]> {
    const names = keys.map(this.#keys.session)
    const values = await call.read(shard, ['MGET', ...names])
    // Fewer answers than keys cannot be told apart: a session would be missing in the list.
    if (!Array.isArray(values) || values.length !== keys.length)
      throw new Error('the answer of MGET was not understood')
    // A proxy before several servers answers with an error in the place of each key that is away.
    return Promise.all(
      values.map((value, i) =>
        value instanceof Error
          ? call.read(shard, ['GET', names[i]!]).catch(error => {
              // MGET of Redis itself reads a key of another type as absent.
              if (refusalOf(error) === 'WRONGTYPE') return null
              throw error
            })
          : value,
      ),
    )
  }

  async #stored(call: Call, shard: string, keys: readonly string[]) {
    const values = await Promise.all(chunks(keys, COLLECT).map(part => this.#values(call, shard, part)))
    return values.flat().map((value, i) => {
      const key = keys[i]!
      if (value === null || value === undefined) return { key, isStored: false, record: null, movedTo: null }
      const found = decode(key, text(value))
      if (found === null || 'corrupt' in found) return { key, isStored: true, record: null, movedTo: null }
      if (found.movedTo !== undefined) return { key, isStored: true, record: null, movedTo: found.movedTo }
      return { key, isStored: true, record: found, movedTo: null }
    })
  }
}
