// A small disk in memory that can be filled, where the system lets this user mount one.
import { execFileSync } from 'node:child_process'
import { chmodSync, closeSync, mkdtempSync, openSync, rmSync, writeSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

export interface Disk {
  readonly folder: string
  /** Writes until nothing more fits. */
  fill(): void
  free(): void
  /** Calls `start` with this disk as the temporary folder. */
  use<T>(start: () => Promise<T>): Promise<T>
  remove(): void
}

/** A disk of so many MiB; a text that says why not, where it cannot be mounted. */
export function smallDisk(size: number): Disk | string {
  const folder = mkdtempSync(join(tmpdir(), 'coatcheck-disk-'))
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${size}m`, 'none', folder], { stdio: 'pipe' })
  } catch (error) {
    rmSync(folder, { recursive: true, force: true })
    return `no disk can be mounted here: ${
      String((error as Error).message)
        .split('\n')
        .at(-2) ?? ''
    }`
  }
  chmodSync(folder, 0o777)
  const filler = join(folder, 'filler')
  return {
    folder,
    fill() {
      const file = openSync(filler, 'w')
      for (const piece of [Buffer.alloc(1 << 20), Buffer.alloc(1 << 12)])
        try {
          for (;;) writeSync(file, piece)
        } catch {}
      closeSync(file)
    },
    free: () => rmSync(filler, { force: true }),
    async use(start) {
      const before = process.env.TMPDIR
      process.env.TMPDIR = folder
      try {
        return await start()
      } finally {
        if (before === undefined) delete process.env.TMPDIR
        else process.env.TMPDIR = before
      }
    },
    remove() {
      execFileSync('umount', ['-l', folder])
      rmSync(folder, { recursive: true, force: true })
    },
  }
}
