// @ts-nocheck: it stands around a block of docs/observability.md, which has the names that are not declared here.
import { mock } from 'node:test'

/* the block */
let isDown = true
class Failing extends MemoryStore {
  override listUser(...args: Parameters<MemoryStore['listUser']>) {
    return isDown ? Promise.reject(new Error('connect ECONNREFUSED')) : super.listUser(...args)
  }
}
const sessions = new SessionManager({ store: new Failing(), sweepInterval: false, onEvent })
const said: string[] = []
mock.method(console, 'error', (line: string) => said.push(line))
mock.timers.enable({ apis: ['setTimeout'] })
const ask = async () => {
  for (let call = 0; call < 100; call++) await sessions.list(42n).catch(() => {})
}
await ask()
mock.timers.tick(9_999)
await ask()
assert.deepEqual(said, ['sessions: the store fails'])
isDown = false
await ask()
mock.timers.tick(10_000)
assert.deepEqual(said.splice(0), ['sessions: the store fails', 'sessions: no failure for 10 s, after 200'])
isDown = true
await ask()
assert.deepEqual(said, ['sessions: the store fails'])
