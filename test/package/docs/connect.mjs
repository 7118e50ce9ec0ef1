// @ts-nocheck: it stands around a block of docs/connect.md, which has the names that are not declared here.
// biome-ignore-all lint/correctness/noUnusedVariables: the blocks use them
// biome-ignore-all lint/correctness/noUnusedImports: the blocks use them
import { SessionManager } from 'coatcheck'
import { connectStore } from 'coatcheck/connect'
import { RedisStore } from 'coatcheck/stores/redis'
import { createClient } from 'redis'

const client = createClient({ url: 'redis://localhost:6379' })
client.on('error', error => console.error(error.message))
await client.connect()
/* the block */
const store = connectStore(sessions, { userOf: data => (data.userId ? { id: data.userId } : null) })
if (sessions.options.idleTimeout !== 2_592_000_000) throw new Error('idleTimeout')
