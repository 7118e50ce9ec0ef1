// Inputs for parsers: texts of a corpus, changed by a few mutations. A text is a sequence of code units, lone surrogates
// included; targets that read bytes take the low half of each.

/** A number for what happens, one for where, one for with what. */
export type Mutation = readonly [what: number, where: number, how: number]

const LONGEST = 4096
/** Characters at the edges of the classes that parsers tell apart. */
const EDGES = [...'\0\t\n\r "%&+,-./09:;<=>@AZ[\\]_`az{|}~\x7f\x80\xa0\xad\u0130\u2028\ud800\udfff\ufeff\uffff']

/** The changes; each linear, and bounded by what `mutated` lets through. */
const CHANGES: ((text: string, at: number, how: number, tokens: readonly string[], other: string) => string)[] = [
  // A flipped bit of a byte, then of a code unit.
  (text, at, how) =>
    text.slice(0, at) + String.fromCharCode(text.charCodeAt(at) ^ (1 << (how % 8))) + text.slice(at + 1),
  (text, at, how) =>
    text.slice(0, at) + String.fromCharCode(text.charCodeAt(at) ^ (1 << (how % 16))) + text.slice(at + 1),
  (text, at, how, tokens) => text.slice(0, at) + tokens[how % tokens.length] + text.slice(at),
  (text, at, how, tokens) => text.slice(0, at) + tokens[how % tokens.length] + text.slice(at + (how % 5)),
  (text, at, how) => text.slice(0, at) + EDGES[how % EDGES.length] + text.slice(at),
  (text, at, how) => text.slice(0, at) + EDGES[how % EDGES.length] + text.slice(at + 1),
  (text, at, how) => text.slice(0, at) + text.slice(at + 1 + (how % 8)),
  // Once more, or many times.
  (text, at, how) =>
    text.slice(0, at) + text.slice(at, at + 1 + (how % 16)).repeat(2 + (how % 7) ** 2) + text.slice(at),
  // The beginning of this and the end of another.
  (text, at, how, _, other) => text.slice(0, at) + other.slice(how % (other.length + 1)),
  (text, at) => text.slice(0, at),
  (text, at, how) => text.slice(at) + text.slice(0, at) + (how % 2 === 0 ? '' : text),
  (text, at, how) => {
    const part = text.slice(at, at + 1 + (how % 8))
    return text.slice(0, at) + (how % 2 === 0 ? part.toUpperCase() : part.toLowerCase()) + text.slice(at + part.length)
  },
]

/** `text` after all mutations; `other` is what a splice takes from. */
export function mutated(
  text: string,
  other: string,
  mutations: readonly Mutation[],
  tokens: readonly string[],
): string {
  let result = text
  for (const [what, where, how] of mutations)
    result = CHANGES[what % CHANGES.length]!(result, where % (result.length + 1), how, tokens, other).slice(0, LONGEST)
  return result
}

/** A text of the corpus after one to six mutations. */
export function drawn(next: () => number, corpus: readonly string[], tokens: readonly string[]): string {
  const mutations: Mutation[] = []
  for (let left = 1 + (next() % 6); left > 0; left -= 1) mutations.push([next(), next(), next()])
  return mutated(corpus[next() % corpus.length]!, corpus[next() % corpus.length]!, mutations, tokens)
}

/** The shortest text found that still fails: pieces are taken away, from halves down to single characters. */
export async function shrunk(text: string, fails: (text: string) => Promise<boolean>): Promise<string> {
  let least = text
  for (let size = Math.ceil(least.length / 2); size >= 1; size = Math.floor(size / 2))
    for (let at = 0; at < least.length; ) {
      const without = least.slice(0, at) + least.slice(at + size)
      if (await fails(without)) least = without
      else at += size
    }
  return least
}
