// PostgreSQL 18 from npm. The package lists its symbolic links instead of having them, and lies where the account that the
// server runs as may not look.
import { cpSync, readFileSync, symlinkSync } from 'node:fs'
import { basename, join } from 'node:path'
import { findNewerPostgres } from '../support/services/engine-list.mjs'
import type { PostgresPrograms } from '../support/services/postgres.ts'

export const NEWER_POSTGRES: PostgresPrograms = {
  place(folder) {
    const from = findNewerPostgres()!
    // Links that an install script has made already are made anew, as relative ones.
    const links: { source: string; target: string }[] = JSON.parse(readFileSync(join(from, 'pg-symlinks.json'), 'utf8'))
    const made = new Set(links.map(({ target }) => join(from, '..', target)))
    cpSync(from, folder, { recursive: true, filter: path => !made.has(path) })
    for (const { source, target } of links) symlinkSync(basename(source), join(folder, '..', rename(target)))
    return { initdb: join(folder, 'bin/initdb'), postgres: join(folder, 'bin/postgres') }

    /** The list names them from the package's folder, in which `native` is what was copied. */
    function rename(target: string): string {
      return target.replace(/^native/, basename(folder))
    }
  },
}
