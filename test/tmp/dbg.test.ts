import { SqliteStore } from 'coatcheck/stores/sqlite'
import { it } from 'vitest'
import { openSqlite, sqliteFile } from '../services/sqlite.ts'
import { NOW, newKey, record } from '../support/sql/records.ts'
it('x', async () => {
  const { file } = sqliteFile()
  const d = openSqlite('libsql', file)
  const noting = { prepare: (s: string) => { const st = d.prepare(s); return new Proxy(st, { get: (t, n) => typeof (t as any)[n] === 'function' ? (...a: any[]) => { const r = (t as any)[n](...a); if (n !== 'raw') console.log(n, s.slice(0, 30), a.length === 1 ? a : '', JSON.stringify(r)?.slice(0, 150)); return r } : (t as any)[n] }) }, exec: (s: string) => d.exec(s) }
  const store = new SqliteStore(noting as never)
  await store.migrate()
  const keys = []
  for (let i = 0; i < 3; i++) { const one = record(); await store.create(one, {}, { now: NOW }); keys.push(one) }
  for (const k of keys) console.log(k.key, await store.read(k.key, { now: NOW }))
  console.log(await store.read(newKey(), { now: NOW }))
  const two = record()
  console.log(await store.replace(keys[0]!.key, 1, two, {}, { now: NOW }))
  console.log(await store.read(two.key, { now: NOW }), await store.read(keys[0]!.key, { now: NOW }), await store.read(two.key, { now: NOW }))
})
