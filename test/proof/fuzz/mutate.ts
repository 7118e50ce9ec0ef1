// Inputs for parsers: texts of a corpus, changed by a few mutations. A text is a sequence of code units, lone surrogates
// included.
import fc from 'fast-check'

const LONGEST = 4096
/** Characters at the edges of the classes that parsers tell apart. */
const EDGES = [...'\0\t\n\r "%&+,-./09:;<=>@AZ[\\]_`az{|}~\x7f\x80\xa0\xad\u0130\u2028\ud800\udfff\ufeff\uffff']

/** The changes; each linear, and bounded by what `spoilt` lets through. */
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

/** A text of the corpus after one to six mutations: each by what happens, where, and with what. */
export function spoilt(corpus: readonly string[], tokens: readonly string[]): fc.Arbitrary<string> {
  const text = fc.constantFrom(...corpus)
  const mutation = fc.tuple(fc.constantFrom(...CHANGES), fc.nat(), fc.nat())
  return fc
    .tuple(text, text, fc.array(mutation, { minLength: 1, maxLength: 6 }))
    .map(([begun, other, mutations]) =>
      mutations.reduce(
        (result, [change, where, how]) =>
          change(result, where % (result.length + 1), how, tokens, other).slice(0, LONGEST),
        begun,
      ),
    )
}
