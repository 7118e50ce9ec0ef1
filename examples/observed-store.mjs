// @ts-check
// A store around another one that tells of every call: what was asked, what came of it, and when it was over. What it is
// told to does the measuring: examples/prometheus and examples/opentelemetry.

/**
 * Told of each call when it begins. It runs the call by `run(end)`, and returns what that returns; `end` is called once, with
 * the outcome ('found', 'none', 'touched', 'conflict', …) or with 'error' and the error.
 * @typedef {(operation: string, run: (end: (outcome: string, error?: unknown) => void) => unknown) => unknown} Watch
 */

/** @param {string} operation @param {any} answer what the contract says: see coatcheck/custom-store */
function outcomeOf(operation, answer) {
  if (operation !== 'read') return typeof answer === 'string' ? answer : 'done'
  if (answer === null) return 'none'
  if ('key' in answer) return 'found'
  return 'movedTo' in answer ? 'moved' : 'corrupt'
}

/**
 * @param {import('coatcheck').Store} store
 * @param {Watch} watch
 * @returns {import('coatcheck').Store}
 */
export function observedStore(store, watch) {
  return new Proxy(store, {
    get(target, name) {
      const method = Reflect.get(target, name)
      if (typeof method !== 'function') return method
      // It computes, and asks nothing.
      if (name === 'shard') return method.bind(target)
      return (/** @type {unknown[]} */ ...all) =>
        watch(`${String(name)}`, end => {
          /** @param {unknown} answer */
          const answered = answer => {
            end(outcomeOf(`${String(name)}`, answer))
            return answer
          }
          /** @param {unknown} error @returns {never} */
          const failed = error => {
            end('error', error)
            throw error
          }
          /** @type {unknown} */
          let answer
          try {
            answer = method.apply(target, all)
          } catch (error) {
            return failed(error)
          }
          // A store that answers at once is answered for at once: a promise would only take time.
          const isAwaited = typeof (/** @type {any} */ (answer)?.then) === 'function'
          return isAwaited ? Promise.resolve(answer).then(answered, failed) : answered(answer)
        })
    },
  })
}
