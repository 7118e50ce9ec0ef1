import { accessSync, constants, mkdtempSync, statfsSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** Where Linux keeps files in memory. */
const IN_MEMORY = '/dev/shm'
/** A container may have little of it. */
const ENOUGH = 256 * 1024 * 1024

/**
 * A new folder, in memory where the machine has room there: databases that cannot be told to leave the disk alone wait for
 * it at each write, and workerd at each read.
 */
export function memoryFolder(name: string): string {
  return mkdtempSync(join(hasRoom() ? IN_MEMORY : tmpdir(), `coatcheck-${name}-`))
}

function hasRoom(): boolean {
  try {
    accessSync(IN_MEMORY, constants.W_OK)
    const { bavail, bsize } = statfsSync(IN_MEMORY)
    return bavail * bsize > ENOUGH
  } catch {
    return false
  }
}
