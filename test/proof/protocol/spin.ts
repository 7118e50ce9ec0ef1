// Runs Spin over a model: `spin -a` writes a program that searches all states, gcc compiles it, it prints what it found.
import { execFile } from 'node:child_process'
import { copyFileSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'

const run = promisify(execFile)
const here = (name: string) => new URL(name, import.meta.url)

/** What a search came to. */
export interface Search {
  /** How many states were met. */
  readonly states: number
  /** The name of the invariant that does not hold, `null` where all do. */
  readonly violated: string | null
  /** Whether all states were met: no bound of depth, memory or time ended the search. */
  readonly isComplete: boolean
  /** Statements that no run executes: each its line, trimmed. */
  readonly unreached: readonly string[]
}

/**
 * Searches all states of a model under some definitions (`NAME` or `NAME=VALUE`), or until an invariant fails.
 * `optimisation`: gcc takes seconds for a fast program, and a search that soon ends needs none.
 * @throws Error with what the checker printed where the model does not compile or ends in another way
 */
export async function search(
  model: string,
  definitions: readonly string[],
  optimisation: '-O0' | '-O2',
): Promise<Search> {
  const folder = mkdtempSync(join(tmpdir(), 'coatcheck-spin-'))
  const file = `${model}.pml`
  try {
    copyFileSync(here(file), join(folder, file))
    await run('spin', ['-a', ...definitions.map(name => `-D${name}`), file], { cwd: folder })
    // Only assertions and ends are asked for, no cycles (SAFETY); states are kept compressed.
    const options = [optimisation, '-w', '-DSAFETY', '-DCOLLAPSE', '-DMEMLIM=4000', '-o', 'pan', 'pan.c']
    await run('gcc', options, { cwd: folder })
    const { stdout } = await run(join(folder, 'pan'), ['-m1000000'], { cwd: folder, maxBuffer: 2 ** 26 })
    return searchFrom(stdout, readFileSync(here(file), 'utf8').split('\n'))
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

function searchFrom(printed: string, lines: readonly string[]): Search {
  const states = /^ *(\d+(?:\.\d+e\+\d+)?) states, stored/m.exec(printed)?.[1]
  const errors = /errors: (\d+)$/m.exec(printed)?.[1]
  if (states === undefined || errors === undefined) throw new Error(`the search was not understood:\n${printed}`)
  const violated = /assertion violated (\S+)/.exec(printed)?.[1] ?? null
  if (errors !== '0' && violated === null) throw new Error(`the search ended in another way:\n${printed}`)
  // The end of a process is reached where the search goes on after it.
  const unreached = [...printed.matchAll(/^\t\w+\.pml:(\d+), state \d+, "(.*)"$/gm)]
    .filter(([, , statement]) => statement !== '-end-')
    .map(([, line]) => lines[Number(line) - 1]!.trim())
  const isComplete = !/Search not completed|max search depth too small|out of memory/.test(printed)
  return { states: Number(states), violated, isComplete, unreached }
}
