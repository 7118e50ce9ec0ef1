// The sources as a module of their own, built so that a test owns what they wait for and what they draw: timers, clocks,
// randomness, and the memory that the requests of one process share. The sources themselves are not changed for it.
import { readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { build } from 'tsup'

const root = fileURLToPath(new URL('../../..', import.meta.url))
const SEAMS = Symbol.for('coatcheck.orders')

export type Library = typeof import('../../../src/index.ts') &
  typeof import('../../../src/custom-server.ts') &
  typeof import('../../../src/custom-store.ts') &
  typeof import('../../../src/fetch.ts')

/** What the built sources ask in place of Node.js, and what they tell of the memory that requests share. */
export interface Seams {
  /** In place of `performance.now()`. */
  steady(): number
  /** In place of `Date.now()`. */
  wall(): number
  setTimeout(callback: () => void, ms: number): object
  clearTimeout(timer: object): void
  setImmediate(callback: () => void): void
  /** In place of `Math.random()`: the waits after a conflict. */
  random(): number
  /** In place of `randomFillSync`. */
  fill(bytes: Uint8Array): void
  /** A memory of this process, such as that of what ended; `entries` is what it holds. */
  memory(entries: Map<string, unknown>): void
  /** A request asked such a memory. */
  asked(key: string, value: unknown): void
  /** A request told it something. */
  told(key: string, value: unknown): void
  /** Writers of one session take turns: one is in line, has its turn, and is done. */
  queued(queue: object, key: string): object
  turn(place: object, turn: { latest: unknown }): void
  left(place: object): void
}

let current: Seams | null = null
Object.defineProperty(globalThis, SEAMS, { value: () => current, configurable: true })

/** From now on these are asked. */
export function useSeams(seams: Seams | null): void {
  current = seams
}

const ask = `globalThis[Symbol.for('coatcheck.orders')]()`

const GLOBALS = `
const seams = () => ${ask}
export const setTimeout = (callback, ms) => seams().setTimeout(callback, ms)
export const clearTimeout = timer => { if (timer) seams()?.clearTimeout(timer) }
export const setImmediate = callback => seams().setImmediate(callback)
export const performance = { now: () => seams().steady() }
export const Date = class extends globalThis.Date { static now() { return seams().wall() } }
export const drawn = () => seams().random()
`

const CRYPTO = `
export * from 'node:crypto'
export const randomFillSync = bytes => { ${ask}.fill(bytes); return bytes }
`

const RECENT = `
import { Recent as Kept } from './recent.ts'
export class Recent extends Kept {
  #entries = new Map()
  constructor(...given) {
    super(...given)
    ${ask}?.memory(this.#entries)
  }
  get(key, now) {
    const value = super.get(key, now)
    if (value === undefined) this.#entries.delete(key)
    ${ask}?.asked(key, value)
    return value
  }
  set(key, value, now) {
    super.set(key, value, now)
    this.#entries.set(key, value)
    ${ask}?.told(key, value)
  }
}
`

const QUEUE = `
import { WriteQueue as Kept } from './write-queue.ts'
export class WriteQueue extends Kept {
  /** The writer that has its turn, by key. */
  #places = new Map()
  enter(key, deadline, late) {
    const place = ${ask}.queued(this, key)
    const begin = turn => {
      ${ask}.turn(place, turn)
      this.#places.set(key, place)
      return turn
    }
    const giveUp = error => {
      ${ask}?.left(place)
      throw error
    }
    const entering = super.enter(key, deadline, late)
    return entering instanceof Promise ? entering.then(begin, giveUp) : begin(entering)
  }
  leave(key) {
    super.leave(key)
    ${ask}?.left(this.#places.get(key))
  }
}
`

const SHIMS: Readonly<Record<string, { readonly code: string; readonly folder: string }>> = {
  'recent.ts': { code: RECENT, folder: 'src/time' },
  'write-queue.ts': { code: QUEUE, folder: 'src/guard' },
  'node:crypto': { code: CRYPTO, folder: 'src/session' },
  globals: { code: GLOBALS, folder: 'src' },
}

let built: Promise<Library> | undefined

/** The library, built once for each process. */
export function loadLibrary(): Promise<Library> {
  built ??= buildLibrary()
  return built
}

async function buildLibrary(): Promise<Library> {
  const folder = join(root, 'node_modules/.cache/coatcheck-orders', `${process.pid}`)
  await build({
    config: false,
    silent: true,
    entry: { library: join(root, 'src/index.ts') },
    outDir: folder,
    format: ['esm'],
    target: 'node20',
    dts: false,
    clean: false,
    splitting: false,
    treeshake: false,
    removeNodeProtocol: false,
    outExtension: () => ({ js: '.mjs' }),
    esbuildOptions: options => {
      options.inject = ['orders:globals']
      options.define = { ...options.define, 'Math.random': 'drawn' }
    },
    esbuildPlugins: [
      {
        name: 'orders',
        setup(plugged) {
          plugged.onResolve({ filter: /^orders:/ }, ({ path }) => ({ path: path.slice(7), namespace: 'orders' }))
          plugged.onResolve({ filter: /(?:\/recent\.ts|\/write-queue\.ts|^node:crypto)$/ }, ({ path, namespace }) => {
            if (namespace === 'orders') return path === 'node:crypto' ? { path, external: true } : undefined
            return { path: path.replace(/^.*\//, ''), namespace: 'orders' }
          })
          plugged.onLoad({ filter: /.*/, namespace: 'orders' }, ({ path }) => {
            const { code, folder: room } = SHIMS[path]!
            return { contents: code, loader: 'js', resolveDir: join(root, room) }
          })
          plugged.onLoad({ filter: /\/src\/index\.ts$/ }, ({ path }) => {
            const more = ['custom-server', 'custom-store', 'fetch'].map(name => `export * from './${name}.ts'`)
            return { contents: [readFileSync(path, 'utf8'), ...more].join('\n'), loader: 'ts' }
          })
        },
      },
    ],
  })
  const library = (await import(pathToFileURL(join(folder, 'library.mjs')).href)) as Library
  // It is in memory now.
  rmSync(folder, { recursive: true, force: true })
  return library
}
