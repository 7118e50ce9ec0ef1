export { keyFor, newUserId, newWriteId, type TestStoreOptions } from './testing/kit.ts'
export { ReferenceStore } from './testing/reference.ts'
export { testStore } from './testing/suite.ts'
