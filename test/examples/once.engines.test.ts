// examples/once.mjs over each store that processes share. What the store does not decide is asked of one.
import { describeEngine } from '../support/services/engines.ts'
import { DATABASES } from './refresh/databases.ts'
import { oneRefresh, refreshScenes } from './refresh/scenes.ts'

for (const { engine, name, open } of DATABASES)
  describeEngine(engine, `one refresh over four processes on ${name}`, () =>
    engine === 'redis' ? refreshScenes(open) : oneRefresh(open),
  )
