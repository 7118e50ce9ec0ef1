// What the store does not decide is asked of one.
import { describeEngine } from '../support/services/engines.ts'
import { DATABASES } from '../support/services/shared-databases.ts'
import { oneRefresh, refreshScenes } from './refresh.ts'

for (const { engine, name, open } of DATABASES)
  describeEngine(engine, `one refresh at oidc-provider, over four processes on ${name}`, () =>
    engine === 'redis' ? refreshScenes(open) : oneRefresh(open),
  )
