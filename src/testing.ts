export { cookieHeader, type StorageState, storageState } from './visits/test-cookies.ts'
