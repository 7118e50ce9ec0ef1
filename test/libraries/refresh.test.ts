// examples/once.mjs by a real OpenID provider, over each store that processes share.
import { DATABASES } from '../examples/refresh/databases.ts'
import { oneRefresh } from '../examples/refresh/scenes.ts'
import { describeEngine } from '../support/services/engines.ts'
import { startOidcProvider } from './provider.ts'

for (const { engine, name, open } of DATABASES)
  describeEngine(engine, `one refresh at oidc-provider, over four processes on ${name}`, () =>
    oneRefresh(open, startOidcProvider),
  )
