import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { afterAll, expect, it } from 'vitest'
import { findBun } from '../support/services/engine-list.mjs'
import { describeEngine } from '../support/services/engines.ts'
import { sqliteFile } from '../support/services/sqlite.ts'

describeEngine('bun', 'the SQLite store with bun:sqlite', () => {
  const { file, remove } = sqliteFile()
  afterAll(remove)

  it('keeps the contract, and waits for locks, under Bun', () => {
    const suite = fileURLToPath(new URL('./bun-suite.ts', import.meta.url))
    const { stdout, stderr } = spawnSync(findBun()!, [suite, file], { encoding: 'utf8', timeout: 110_000 })
    expect(`${stdout}${stderr}`.trim()).toMatch(/^\d{3,} passed, 0 failed$/)
  }, 120_000)
})
