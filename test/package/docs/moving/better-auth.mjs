// @ts-nocheck: it stands around a block of docs/moving/better-auth.md, which has the names that are not declared here. A row as the other
// library writes it, and a browser with its cookie.
import { createHmac } from 'node:crypto'
import { fetchVisits } from 'coatcheck/fetch'

/* the block */
database.exec('CREATE TABLE session (id TEXT, token TEXT UNIQUE, userId TEXT, createdAt TEXT, expiresAt TEXT)')
database.exec('CREATE TABLE user (id TEXT PRIMARY KEY, name TEXT)')
const instants = [new Date().toISOString(), new Date(Date.now() + 7 * 86_400_000).toISOString()]
database.prepare("INSERT INTO user VALUES ('u1', 'ada')").run()
database.prepare("INSERT INTO session VALUES ('s1', 'a-random-token', 'u1', ?, ?)").run(...instants)
const signature = createHmac('sha256', secret).update('a-random-token').digest('base64')
const cookie = `__Secure-better-auth.session_token=${encodeURIComponent(`a-random-token.${signature}`)}`

const { visit } = await importer.import(cookie, header =>
  fetchVisits(sessions).of(new Request('https://example.com/', { headers: { cookie: header } })),
)
console.log((await visit.get())?.user) // { id: 'u1', name: 'ada' }
