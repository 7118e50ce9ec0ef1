export type { D1Answer, D1Client, D1Query } from './sql/d1/engine.ts'
export { D1Store, type D1StoreOptions } from './sql/d1/store.ts'
