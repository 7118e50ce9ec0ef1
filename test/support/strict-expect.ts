// Loaded before each test file: an expectation that could not fail, fails.
import { chai, expect } from 'vitest'

// vitest takes a promise that rejects with undefined or null for one that rejects with any error:
// `rejects.toThrow('text')` passes.
chai.use((_, utils) => {
  for (const name of ['toThrow', 'toThrowError'])
    utils.overwriteMethod(
      chai.Assertion.prototype,
      name,
      (original: (...args: unknown[]) => unknown) =>
        function (this: object, ...args: unknown[]) {
          if (utils.flag(this, 'promise') === 'rejects' && !utils.flag(this, 'negate')) {
            const reason = utils.flag(this, 'object')
            if (reason === undefined || reason === null)
              throw new chai.AssertionError(`expected an error, and the promise was rejected with ${reason}`)
          }
          return original.apply(this, args)
        },
    )
})

// `toMatchObject({ message: /text/ })` passes with every message.
expect.addEqualityTesters([
  (_, expected) => {
    if (expected instanceof RegExp) throw new TypeError(`write expect.stringMatching(${expected}) here`)
    return undefined
  },
])
