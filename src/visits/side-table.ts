// Values beside objects, found by the object itself as in a WeakMap.

class Itself {
  constructor(object: object) {
    // biome-ignore lint/correctness/noConstructorReturn: a subclass puts its private field into the object that this returns
    return object
  }
}

/**
 * A WeakMap for values that refer to their keys, as what belongs to a request does. A WeakMap keeps such a value, and so its
 * key, until the next full collection of garbage: requests then outlive their responses, and each entry costs 2 µs. Here
 * the value is in a private field of the key, which nothing else sees: it is not copied with the key's properties, and a
 * proxy does not pass it on.
 */
export class SideTable<K extends object, V> {
  readonly #Entry = entries<V>()
  /** Objects that take no new property may take no private field either. */
  readonly #frozen = new WeakMap<K, V>()

  get(key: K): V | undefined {
    if (Object(key) !== key) return undefined
    return this.#Entry.of(key) ?? this.#frozen.get(key)
  }

  /** Once for each key. */
  set(key: K, value: V): void {
    if (Object.isExtensible(key)) new this.#Entry(key, value)
    else this.#frozen.set(key, value)
  }
}

/** A class for each table: its private field is another one. */
const entries = <V>() =>
  class Entry extends Itself {
    readonly #value: V

    constructor(key: object, value: V) {
      super(key)
      this.#value = value
    }

    static of(key: object): V | undefined {
      return #value in key ? key.#value : undefined
    }
  }
