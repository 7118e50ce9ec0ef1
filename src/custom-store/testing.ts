export { keyFor, newUserId, newWriteId, type TestStoreOptions } from './kit.ts'
export { type FastCheck, modelTest } from './model.ts'
export { type KeptForward, type KeptMinPasswordVersion, ReferenceStore } from './reference.ts'
export { testStore } from './suite.ts'
