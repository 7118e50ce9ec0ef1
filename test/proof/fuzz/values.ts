// A JavaScript value from a text, so that values are drawn, spliced and shrunk as texts are. Each character is an order to
// a small machine with a stack; what is left on top is the value.

class Point {
  x = 1
}

const ATOMS: Record<string, () => unknown> = {
  n: () => null,
  t: () => true,
  f: () => false,
  u: () => undefined,
  '0': () => 0,
  '1': () => 1,
  '2': () => -0,
  '3': () => 1.5e300,
  '4': () => 2 ** 53 + 2,
  '5': () => Number.NaN,
  '6': () => Number.POSITIVE_INFINITY,
  '7': () => -17,
  '8': () => 18446744073709551615n,
  '9': () => 5e-324,
  e: () => '',
  q: () => '"\\\u0000\u001f\u2028',
  s: () => 'text \u{1f36a}',
  l: () => '\ud800',
  d: () => new Date(0),
  m: () => new Map([[1, 2]]),
  p: () => new Point(),
  r: () => /x/,
  y: () => Symbol('y'),
  F: () => () => 1,
  b: () => Object(1n),
  N: () => Object(7),
  S: () => Object('boxed'),
  B: () => Object(false),
  O: () => Object.create(null),
  T: () => ({ toJSON: () => 'other' }),
  U: () => new Uint8Array(2),
  // biome-ignore lint/suspicious/noSparseArray: one with a hole is asked for
  H: () => [1, , 3],
  X: () => Object.assign([1], { name: 1 }),
  Y: () => ({ [Symbol.iterator]: 1 }),
  I: () => Object.defineProperty({}, 'hidden', { value: 1, enumerable: false }),
}
const KEYS = ['a', 'b', '', '0', '10', '__proto__', 'constructor', 'prototype', 'toJSON', 'a b', '\ud800', 'isAdmin']

/** The words of the machine, for the mutations. */
export const VALUE_TOKENS = [
  ...Object.keys(ATOMS),
  '[',
  ']',
  '{',
  ':a',
  ':c',
  ':f',
  ':g',
  ':k',
  '(',
  ')',
  'c',
  '{1:f',
  '[1]',
  '{{1:a:a',
]

export function valueFrom(text: string): unknown {
  const stack: unknown[] = []
  const open: number[] = []
  // What stands in two places is written twice, and so on: a few are enough.
  let shared = 0
  let deep = 0
  for (let at = 0; at < text.length; at += 1) {
    const char = text[at]!
    if (char === '[') open.push(stack.length)
    else if (char === ']') stack.push(stack.splice(open.pop() ?? 0))
    else if (char === '{') stack.push({})
    else if (char === ':') {
      // The next character names the key; what is on top becomes a member of what is below.
      at += 1
      const key = KEYS[((text.charCodeAt(at) || 0) + KEYS.length * 9 - 97) % KEYS.length]!
      const [object, value] = [stack.at(-2), stack.at(-1)]
      if (typeof object === 'object' && object !== null && Object.isExtensible(object) && !ArrayBuffer.isView(object)) {
        stack.pop()
        Reflect.defineProperty(object, key, { value, enumerable: true, configurable: true, writable: true })
      }
    } else if (char === 'c' && shared < 4 && typeof stack.at(-1) === 'object' && stack.at(-1) !== null) {
      shared += 1
      // What is on top, once more: the same object in two places, or in itself.
      stack.push(stack.at(-1))
    } else if (char === '(' && stack.length > 0) {
      for (let depth = 0; depth < 30 && deep < 300; depth += 1, deep += 1) stack.push([stack.pop()])
    } else {
      const atom = ATOMS[char]
      stack.push(atom === undefined ? char.repeat(1 + (char.charCodeAt(0) % 3)) : atom())
    }
  }
  return stack.at(-1)
}
