// Session data: the codec, `stringify`, and what stands beside the data in the same text.
import assert from 'node:assert/strict'
import { isDeepStrictEqual } from 'node:util'
import { stringify } from 'coatcheck'
import { SessionError } from '../../../src/contract/errors.ts'
import { jsonCodec } from '../../../src/data/codec.ts'
import { type Meta, packMeta, unpackMeta } from '../../../src/data/meta.ts'
import { copyPlain } from '../../../src/data/plain.ts'
import { answerOf, BASE64URL, DIGITS, same, type Target } from './target.ts'
import { VALUE_TOKENS, valueFrom } from './values.ts'

/** What JSON makes of a value, without the members that are undefined; `refused` where it would change the value. */
const REFUSED = Symbol('refused')
function survives(value: unknown, above: readonly object[]): unknown {
  if (value === null || typeof value === 'string' || typeof value === 'boolean') return value
  // JSON writes -0 as 0.
  if (typeof value === 'number') return Number.isFinite(value) ? value + 0 : REFUSED
  if (typeof value !== 'object' || above.includes(value) || above.length >= 100) return REFUSED
  const below = [...above, value]
  const names = Reflect.ownKeys(value)
  const isArray = Array.isArray(value)
  const prototype = Object.getPrototypeOf(value)
  if (prototype !== (isArray ? Array.prototype : Object.prototype) && !(prototype === null && !isArray)) return REFUSED
  if (typeof (value as { toJSON?: unknown }).toJSON === 'function') return REFUSED
  if (isArray) {
    if (
      names.length !== value.length + 1 ||
      names.some((name, at) => name !== (at < value.length ? `${at}` : 'length'))
    )
      return REFUSED
    const members = value.map(member => survives(member, below))
    return members.includes(REFUSED) ? REFUSED : members
  }
  const kept: [string, unknown][] = []
  for (const name of names) {
    const { value: member, enumerable } = Object.getOwnPropertyDescriptor(value, name)!
    if (typeof name === 'symbol' || !enumerable || name === '__proto__' || name === 'constructor') return REFUSED
    if (member === undefined) continue
    const copy = survives(member, below)
    if (copy === REFUSED) return REFUSED
    kept.push([name, copy])
  }
  return Object.fromEntries(kept)
}

const codec: Target = {
  name: 'codec',
  corpus: [
    '{s:an:b',
    '[123]',
    '{8:a',
    '{d:a',
    '{{1:f:a',
    '{1:g',
    '[[[1]]]',
    'H',
    'X',
    '{u:a',
    '{T:a',
    '{1(((( :a',
    '{"isAdmin":true}',
    '{"__proto__":{"isAdmin":true}}',
    '{c:a',
    '{2:a',
    'O1:a',
    '[cc]',
    'I',
    'Y',
  ],
  more: [...VALUE_TOKENS, '"__proto__":', '{"a":', '\\u0000'],
  check(input) {
    const value = valueFrom(input)
    const expected = survives(value, [])
    let text: string | null = null
    try {
      text = jsonCodec.encode(value)
    } catch (error) {
      if (!(error instanceof SessionError && error.code === 'ERR_SESSION_DATA')) throw error
      assert.match(error.message, /^data/)
    }
    same(text !== null, expected !== REFUSED, 'encode')
    if (text !== null) assert.ok(isDeepStrictEqual(jsonCodec.decode(text), expected), 'what was encoded comes back')
    // Any text: JSON or a SyntaxError; a copy of what it says has own members alone.
    let read: unknown
    let isJson = true
    try {
      read = jsonCodec.decode(input)
    } catch (error) {
      assert.ok(error instanceof SyntaxError)
      isJson = false
    }
    if (isJson) assert.deepEqual(JSON.stringify(copyPlain(read)), JSON.stringify(read))
    return `${text === null} ${isJson} ${typeof value}`
  },
}

/** JSON text by JSON.stringify, where bigints stand as marked texts until the end. */
function jsonReference(value: unknown): string | undefined {
  const mark = '\u{e000}bigint:'
  const plain = (each: unknown) =>
    typeof each === 'object' && each !== null && Object.prototype.toString.call(each) === '[object BigInt]'
      ? BigInt.prototype.valueOf.call(each)
      : each
  const text = JSON.stringify(value, (_, each) => {
    const own = plain(each)
    return typeof own === 'bigint' ? `${mark}${own}` : each
  })
  return text?.replaceAll(new RegExp(`"${mark}(-?\\d+)"`, 'g'), '$1')
}

const json: Target = {
  name: 'stringify',
  corpus: [
    '{8:a',
    '[8b]',
    '{q:as:bl:c',
    '[2567]',
    '[NSB]',
    'T',
    '{T:a',
    '[dmp]',
    '[uyF]',
    '{u:a',
    'H',
    'X',
    '{c:a',
    '[[c]c]',
    '{1:f',
    'O8:a',
    'U',
    '(((',
  ],
  more: VALUE_TOKENS,
  check(input) {
    const value = valueFrom(input)
    let expected: string | undefined | null
    try {
      expected = jsonReference(value)
    } catch (error) {
      assert.match(String(error), /circular/)
      expected = null
    }
    const ours = answerOf(() => stringify(value))
    if (expected === null) assert.match((ours as { typeError: string }).typeError, /circular/)
    else same(ours, { value: expected }, 'stringify')
    // Texts, as they are.
    same(stringify(input), JSON.stringify(input), 'a text')
    return `${expected === null} ${typeof value} ${expected?.length === 2}`
  },
}

const CSRF = 'Zk1vX0bq7TnE-Zk1vX0bq7TnE_Zk1vX0bq7TnEabcdef'.slice(0, 43)

/** Field by field, from the left; `null` where the text is none of ours. */
function metaReference(stored: string): { meta: Meta; text: string } | null {
  let at = 1
  const run = (allowed: string, most: number) => {
    let end = at
    while (end < stored.length && end - at < most && allowed.includes(stored[end]!)) end += 1
    return stored.slice(at, end)
  }
  /** What stands after this letter, if it is of that length. */
  const field = (letter: string, allowed: string, least: number, most: number): string | undefined => {
    if (stored[at] !== letter) return undefined
    at += 1
    const text = run(allowed, most)
    at += text.length
    if (text.length < least) at = stored.length + 1
    return text
  }
  const isUnverified = stored.startsWith('v-', at)
  if (isUnverified) at += 2
  const verified = isUnverified ? undefined : field('v', DIGITS, 1, 16)
  const csrf = field('c', BASE64URL, 43, 43)
  const idle = field('i', DIGITS, 1, 13)
  const count = field('n', DIGITS, 1, 3)
  const since = count === undefined ? undefined : field('t', DIGITS, 1, 16)
  if (count !== undefined && since === undefined) return null
  // ECMA-262, 21.4.1.1: the largest time value.
  if (stored[at] !== '@' || Number(verified ?? 0) > 864e13) return null
  return {
    meta: {
      ...(isUnverified ? { verifiedAt: null } : verified === undefined ? {} : { verifiedAt: Number(verified) }),
      ...(csrf === undefined ? {} : { csrf }),
      ...(idle === undefined ? {} : { idle: Number(idle) }),
      ...(count === undefined ? {} : { newIds: { count: Number(count), since: Number(since) } }),
    },
    text: stored.slice(at + 1),
  }
}

const meta: Target = {
  name: 'meta',
  corpus: [
    '{"theme":"dark"}',
    '@v1767225600000@{}',
    '@v-@{}',
    `@c${CSRF}@{}`,
    '@i1800000@{"a":"@"}',
    '@n32t1767225600000@{}',
    '@n3@{}',
    `@v1767225600000c${CSRF}i1800000n1t1767225600000@{"theme":"dark"}`,
    '@@@text of a codec',
    '@t@',
    '@v99999999999999999@{}',
  ],
  more: ['9', CSRF, '{}', '\n', 'x'],
  check(input) {
    const ours = unpackMeta(input)
    const reference = input.startsWith('@') ? metaReference(input) : { meta: {}, text: input }
    // What is broken proves no password.
    const expected = reference ?? { meta: { verifiedAt: null }, text: input }
    assert.deepEqual(ours, expected, 'unpackMeta: the reference answers otherwise')
    // Whatever a codec writes, it gets back, with what stood beside it.
    if (reference !== null)
      same(unpackMeta(packMeta(reference.meta, input)), { ...reference, text: input }, 'packMeta and unpackMeta')
    return reference === null ? 'broken' : Object.keys(reference.meta).join()
  },
}

export const DATA: readonly Target[] = [codec, json, meta]
