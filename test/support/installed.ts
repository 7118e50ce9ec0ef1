import { createRequire } from 'node:module'

const { resolve } = createRequire(new URL('../../package.json', import.meta.url))

/** Whether the packages that a program imports are those of `npm ci`. */
export const isInstalled = (code: string) =>
  [...code.matchAll(/(?:from|import) '([^'.][^']*)'/g)].every(([, name]) => {
    try {
      return name!.startsWith('coatcheck') || resolve(name!)
    } catch {
      return false
    }
  })
