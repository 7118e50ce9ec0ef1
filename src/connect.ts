export { type ConnectStore, connectStore } from './connect/connect-store.ts'
export type { OldConnectStore } from './connect/old-store.ts'
export type { ConnectStoreOptions, ConnectUser } from './connect/options.ts'
