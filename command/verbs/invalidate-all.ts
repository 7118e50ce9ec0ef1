import { type Ending, Failure } from '../exit.ts'
import { counted } from '../messages.ts'
import type { Task } from '../task.ts'
import { countOf } from './count.ts'

/** Logs everyone out; asks first, unless told not to. */
export async function invalidateAll(task: Task): Promise<Ending> {
  const { sessions, output, progress, signal } = task
  if (!task.given.has('yes') && !(await isWanted(task))) {
    if (!signal.aborted) throw new Failure('nothing was ended, since the answer was not yes')
    output.say('Nothing was ended.')
    return 'interrupted'
  }
  let ended = 0
  let isOver = false
  try {
    ended = await sessions.invalidateAll({
      signal,
      onProgress: now => {
        ended = now.ended
        progress.show(`${counted(ended)} ended`)
      },
    })
    isOver = true
  } catch (error) {
    if (!signal.aborted || error !== signal.reason) throw error
  }
  progress.clear()
  const rest = isOver ? '.' : ', then interrupted: run it again for the rest.'
  await output.result(`${counted(ended)} ended${rest}`, { ended, interrupted: !isOver })
  return isOver ? 'done' : 'interrupted'
}

async function isWanted(task: Task): Promise<boolean> {
  const { name, given, output } = task
  const count = await countOf(task)
  if (count === null) return false
  const tenant = given.get('namespace')
  const [whom, those] = tenant === undefined ? ['every user', ''] : [`every user of ${tenant}`, ` of theirs`]
  output.say(`${name}: this logs ${whom} out. It ends ${counted(count)}${those}, and all remember tokens.`)
  return (await task.ask('Type yes to go on:')).trim().toLowerCase() === 'yes'
}
