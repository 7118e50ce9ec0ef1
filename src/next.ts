export { type NextFunctions, type NextResponses, type NextVisits, nextVisits } from './next/next-visits.ts'
