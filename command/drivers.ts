// Drivers are the operator's: looked for in the folder where the command runs, as an import of the application would be,
// then beside the package itself (npx -p coatcheck -p pg).
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { Failure } from './exit.ts'
import { messageOf } from './messages.ts'

const PLACES = [join(process.cwd(), 'from-here.js'), import.meta.url]

const isMissing = (error: unknown, name: string) => {
  const { code, message } = error as { code?: unknown; message?: unknown }
  // One that lacks a package of its own is broken, not missing.
  return code === 'ERR_UNKNOWN_BUILTIN_MODULE' || (code === 'MODULE_NOT_FOUND' && String(message).includes(`'${name}'`))
}

/** A module that is installed here, or `null`. */
function load(name: string): unknown {
  for (const place of PLACES)
    try {
      return createRequire(place)(name)
    } catch (error) {
      if (!isMissing(error, name)) throw error
    }
  return null
}

/**
 * The first driver that is installed and opens.
 * @throws Failure that says what to install, or why each that is there does not open
 */
export async function withDriver<T>(
  database: string,
  drivers: readonly (readonly [name: string, open: (driver: unknown) => T | Promise<T>])[],
  /** Whether an error of `open` is the driver's own, such as a binary of another Node.js: then the next one is tried. */
  isBroken: (error: unknown) => boolean = () => false,
): Promise<T> {
  const broken: string[] = []
  for (const [name, open] of drivers) {
    let driver: unknown
    try {
      driver = load(name)
    } catch (error) {
      broken.push(`${name} cannot be loaded (${messageOf(error)})`)
      continue
    }
    if (driver === null) continue
    try {
      return await open(driver)
    } catch (error) {
      if (!isBroken(error)) throw error
      broken.push(`${name} cannot be loaded (${messageOf(error)})`)
    }
  }
  if (broken.length > 0) throw new Failure(broken.join('; '))
  const [first, ...others] = drivers
    .map(([name]) => name.replace('/promise', ''))
    .filter(name => !name.startsWith('node:'))
  const or = others.length === 0 ? '' : ` (or ${others.join(', ')})`
  throw new Failure(`${database} needs a driver that is not installed here: npm i ${first}${or}`)
}
