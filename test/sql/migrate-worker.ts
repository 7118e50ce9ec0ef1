// One of ten processes that migrate at once.
import { openContestant } from './contestant.ts'

process.once('message', async (message: Parameters<typeof openContestant>[0]) => {
  const { store } = openContestant(message)
  const answer = await store.migrate().then(
    () => 'done',
    (error: Error) => error.message,
  )
  process.send?.(answer)
})
process.on('disconnect', () => process.exit())
process.send?.('ready')
