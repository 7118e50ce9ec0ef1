// @ts-check
import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'

/** The project's folder. */
export const root = fileURLToPath(new URL('../../..', import.meta.url))

/**
 * Runs the suite with this Node or another one; answers the exit code.
 * @param {readonly string[]} args
 * @param {{ node?: string, env?: Record<string, string>, exclude?: readonly string[] }} [options] `exclude`: globs of test files
 * @returns {number}
 */
export function vitest(args, { node = process.execPath, env = {}, exclude = [] } = {}) {
  const { status } = spawnSync(node, ['node_modules/vitest/vitest.mjs', 'run', ...args], {
    cwd: root,
    stdio: ['ignore', 'inherit', 'inherit'],
    env: { ...process.env, ...env, COATCHECK_EXCLUDE: JSON.stringify(exclude) },
  })
  return status ?? 1
}
