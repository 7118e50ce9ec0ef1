// @ts-check
// Which processors the processes of a benchmark run on. With one connection only one of client, server and database runs
// at a time, and the system puts them on one processor or on several as it likes: to wake another processor costs a server
// as much as the whole request by hand, so that of two servers the one looked twice as dear as the other by where it was
// put. Hence they share one.
import { execFileSync } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'

/** A process, those that it started, and theirs. @param {number} pid @returns {number[]} */
export function family(pid) {
  try {
    const children = readdirSync(`/proc/${pid}/task`).flatMap(thread =>
      readFileSync(`/proc/${pid}/task/${thread}/children`, 'utf8').split(' ').filter(Boolean).map(Number),
    )
    return [pid, ...children.flatMap(family)]
  } catch {
    return [] // It has ended, or the system is not Linux.
  }
}

/** Those that this process may run on now, such as `0-1` or `0,2-3`; `null` where the system does not tell. */
function allowed() {
  try {
    return /^Cpus_allowed_list:\s*(\S+)/m.exec(readFileSync('/proc/self/status', 'utf8'))?.[1] ?? null
  } catch {
    return null
  }
}

/** @param {string} processors */
function putOn(processors) {
  for (const pid of family(process.pid)) {
    // One that has ended meanwhile is none that matters.
    const own = pid === process.pid
    try {
      execFileSync('taskset', ['--all-tasks', '--cpu-list', '--pid', processors, String(pid)], { stdio: 'pipe' })
    } catch (error) {
      if (own) throw error
    }
  }
}

/**
 * Does the work with this process, and all that it started, on one processor. Answers whether the system could do it.
 * @param {() => Promise<void>} work
 */
export async function onOneProcessor(work) {
  const before = allowed()
  let isOne = false
  try {
    if (before !== null) putOn(/** @type {string} */ (/^\d+/.exec(before)?.[0]))
    isOne = before !== null
  } catch {
    // No taskset: it is a part of util-linux.
  }
  try {
    await work()
  } finally {
    if (isOne && before !== null) putOn(before)
  }
  return isOne
}

/** Nanoseconds that the threads of a process have run; 0 where the system does not tell. @param {number} pid */
function ranFor(pid) {
  try {
    return readdirSync(`/proc/${pid}/task`)
      .map(thread => Number(readFileSync(`/proc/${pid}/task/${thread}/schedstat`, 'utf8').split(' ')[0]))
      .reduce((sum, each) => sum + each, 0)
  } catch {
    return 0
  }
}

/** Begins to count; answers what tells the microseconds of processor time since, of this process and of all that it started. */
export function countProcessorTime() {
  const started = () => family(process.pid).slice(1)
  const before = new Map(started().map(pid => [pid, ranFor(pid)]))
  const own = process.cpuUsage()
  return () => {
    const { user, system } = process.cpuUsage(own)
    const others = started().map(pid => Math.max(0, ranFor(pid) - (before.get(pid) ?? 0)))
    return others.reduce((sum, each) => sum + each / 1000, user + system)
  }
}
