export { type ConnectStore, connectStore } from './connect/connect-store.ts'
export type { ConnectUser } from './connect/identity.ts'
export type { OldConnectStore } from './connect/old-store.ts'
export type { ConnectStoreOptions } from './connect/options.ts'
