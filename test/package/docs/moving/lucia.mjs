// @ts-nocheck: it stands around a block of docs/moving/lucia.md, which has the names that are not declared here. A row as the other
// library writes it, and a browser with its cookie.
import { createHash } from 'node:crypto'
import { fetchVisits } from 'coatcheck/fetch'

/* the block */
database.exec('CREATE TABLE user_session (id TEXT PRIMARY KEY, user_id TEXT, expires_at INTEGER)')
const hash = createHash('sha256').update('a-random-token').digest('hex')
database.prepare("INSERT INTO user_session VALUES (?, 'u1', ?)").run(hash, Math.floor(Date.now() / 1000) + 3600)
const { visit } = await importer.import('session=a-random-token', cookie =>
  fetchVisits(sessions).of(new Request('https://example.com/', { headers: { cookie } })),
)
console.log((await visit.get())?.user) // { id: 'u1', name: '' }
