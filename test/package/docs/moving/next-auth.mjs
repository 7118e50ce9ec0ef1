// @ts-nocheck: it stands around a block of docs/moving/next-auth.md, which has the names that are not declared here. A row as the other
// library writes it, and a browser with its cookie.
import { fetchVisits } from 'coatcheck/fetch'

/* the block */
database.exec('CREATE TABLE sessions (id INTEGER PRIMARY KEY, "sessionToken" TEXT UNIQUE, "userId" TEXT, expires TEXT)')
const expires = new Date(Date.now() + 3_600_000).toISOString()
database.prepare("INSERT INTO sessions VALUES (1, 'a-random-token', 'u1', ?)").run(expires)
const { visit } = await importer.import('__Secure-authjs.session-token=a-random-token', cookie =>
  fetchVisits(sessions).of(new Request('https://example.com/', { headers: { cookie } })),
)
console.log((await visit.get())?.user) // { id: 'u1', name: '' }
