export { type SecondaryStorage, secondaryStorage } from './better-auth/storage.ts'
