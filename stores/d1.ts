export { type D1Answer, type D1Client, type D1Query, D1Store } from './sql/remote-sqlite/d1.ts'
export type { RemoteSqliteOptions } from './sql/remote-sqlite/store.ts'
