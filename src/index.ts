export { SessionError, type SessionErrorCode, SessionStoreError, type StoreOperation } from './errors.ts'
export { corruption } from './record.ts'
export {
  type Corrupt,
  type CreateOptions,
  type CreateResult,
  type DeleteUserOptions,
  FORWARD_LIFETIME,
  type Forward,
  type RecordChange,
  type ReplaceResult,
  type SessionLimit,
  type SessionRecord,
  type Store,
  SWEEP_MARGIN,
} from './store.ts'
