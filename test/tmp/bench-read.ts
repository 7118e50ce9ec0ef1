const dir = process.argv[2]!, engine = process.argv[3]!
const { performance: p } = globalThis
const load = async (f: string) => import(`/tmp/bb/${dir.includes("old") ? "old" : "new"}/${f.replace(/\W/g, "_")}.mjs`)
const { createRequire } = await import('node:module')
const req = createRequire('/work/w/sql2/package.json')
const NOW = Date.now()
const rec = (i: number) => ({ key: (`k${i}`.padEnd(46, 'x')), kind: 'session', parent: null, userId: `${i}`, username: 'ada', userName: 'ada', passwordVersion: null, data: '{"cart":[1,2,3],"name":"x"}', version: 1, writeId: 'abcdefgh' + i, createdAt: NOW, seenAt: NOW, expiresAt: NOW + 3600000, absoluteExpiresAt: NOW + 9e6 })
let store: any
if (engine === 'sqlite') {
  const { SqliteStore } = await load('stores/sql/sqlite/store.ts')
  const D = req('libsql'); const d = new D(`/tmp/bench-${process.pid}.db`); d.exec('PRAGMA journal_mode=WAL')
  store = new SqliteStore(d)
} else {
  const { MysqlStore } = await load('stores/sql/mysql/store.ts')
  const mysql = req('mysql2/promise')
  store = new MysqlStore(mysql.createPool({ uri: process.env.URL, connectionLimit: 10 }), { table: process.argv[4] })
}
await store.migrate()
for (let i = 0; i < 100; i++) { const { username, ...r } = rec(i) as any; if (dir.includes('old')) { r.username = username; delete r.userName } else r.username = username; delete (r as any).userName; await store.create(r, {}, { now: NOW }) }
const keys = Array.from({ length: 100 }, (_, i) => rec(i).key)
async function bench(name: string, n: number, width: number) {
  const one = async (i: number) => { const a = store.read(keys[i % 100]!, { now: NOW }); if (a instanceof Promise) await a }
  const run = async (n: number) => { for (let i = 0; i < n; i += width) { if (width === 1) await one(i); else await Promise.all(Array.from({ length: width }, (_, j) => one(i + j))) } }
  await run(n / 4)
  const c = process.cpuUsage(); const t = p.now()
  await run(n)
  const d = process.cpuUsage(c)
  console.log(dir.includes('old') ? 'old' : 'new', name, 'cpu us', ((d.user + d.system) / n).toFixed(2), 'wall us', ((p.now() - t) * 1000 / n).toFixed(2))
}
if (engine === 'sqlite') for (let r = 0; r < 3; r++) await bench('read', 60000, 1)
else for (let r = 0; r < 2; r++) { await bench('read x1', 8000, 1); await bench('read x64', 64000, 64) }
process.exit(0)
