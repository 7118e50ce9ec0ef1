export { cookieHeader } from './visits/cookie.ts'
