// All that the author of a store needs: the contract with its rules, the records, and the errors it may answer with.
export { SessionError, type SessionErrorCode, SessionStoreError, type StoreOperation } from './contract/errors.ts'
export { corruption } from './contract/record.ts'
export {
  CLOCK_TOLERANCE,
  type Corrupt,
  type CreateOutcome,
  DEFAULT_STORE_TIMEOUT,
  type DeleteUserOptions,
  FORWARD_LIFETIME,
  type Forward,
  MAX_DATA_BYTES,
  type ReadAnswer,
  type RecordChange,
  type ReplaceOptions,
  type ReplaceOutcome,
  type ScanPage,
  type SessionRecord,
  type Store,
  type StoreCall,
  SWEEP_MARGIN,
} from './contract/store.ts'
