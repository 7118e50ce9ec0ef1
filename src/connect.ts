export type { OldConnectStore } from './connect/beside-old-store.ts'
export { type ConnectStore, connectStore } from './connect/connect-store.ts'
export type { ConnectStoreOptions, ConnectUser } from './connect/options.ts'
