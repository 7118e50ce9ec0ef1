import { chmodSync, mkdtempSync, rmSync, watch } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { describeEngine } from './engines.ts'
import { startMariadb } from './mariadb.ts'

describeEngine('mariadb', 'the private MariaDB of a test', () => {
  let shared: string
  beforeEach(() => {
    shared = mkdtempSync(join(tmpdir(), 'coatcheck-shared-'))
    chmodSync(shared, 0o777)
    vi.stubEnv('TMPDIR', shared)
  })
  afterEach(() => {
    vi.unstubAllEnvs()
    rmSync(shared, { recursive: true, force: true })
  })

  // Each server that starts, and each installation, deletes the temporary tables there: also another server's.
  it('leaves no table in the temporary folder that all share', async () => {
    const made: string[] = []
    const watcher = watch(shared, (_, name) => made.push(name ?? ''))
    const server = await startMariadb()
    await server.pool().query('CREATE TEMPORARY TABLE t (a INT) ENGINE=Aria')
    await server.stop()
    watcher.close()
    expect(made.filter(name => !name.startsWith('coatcheck-my-'))).toEqual([])
    expect(made).not.toEqual([])
  })
})
