export { keyFor, newUserId, newWriteId, type TestStoreOptions } from '../stores/testing/kit.ts'
export { type FastCheck, modelTest } from '../stores/testing/model.ts'
export { type KeptFloor, type KeptForward, ReferenceStore } from '../stores/testing/reference.ts'
export { testStore } from '../stores/testing/suite.ts'
