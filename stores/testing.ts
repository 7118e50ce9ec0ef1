export { keyFor, newUserId, newWriteId, type TestStoreOptions } from './testing/kit.ts'
export { type FastCheck, modelTest } from './testing/model.ts'
export { ReferenceStore } from './testing/reference.ts'
export { testStore } from './testing/suite.ts'
