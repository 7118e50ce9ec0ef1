// For mocha: express-session's MemoryStore, which its tests use throughout, is our store from here on.
const { createRequire } = require('node:module')
const { join } = require('node:path')

// The package itself, as it is built: this folder is another package.
const root = createRequire(join(__dirname, '../../../package.json'))
const { SessionManager } = root('coatcheck')
const { connectStore } = root('coatcheck/connect')
const { MemoryStore } = root('coatcheck/stores/memory')

function OverConnect() {
  const times = { idleTimeout: '400d', touchInterval: '1ms', absoluteTimeout: '400d' }
  return connectStore(new SessionManager({ store: new MemoryStore(), sweepInterval: false, ...times }))
}

/** @type {any} */
const cache = require.cache
const path = require.resolve('express-session/session/memory')
cache[path] = { id: path, loaded: true, exports: OverConnect }
