import { afterAll, beforeAll } from 'vitest'

/** What a block of tests starts before its first, and stops after its last. */
export function started<T extends { stop(): unknown } | { close(): unknown }>(start: () => Promise<T>): () => T {
  let running: T | undefined
  beforeAll(async () => {
    running = await start()
  }, 240_000)
  afterAll(() => running && ('stop' in running ? running.stop() : running.close()))
  return () => running!
}
