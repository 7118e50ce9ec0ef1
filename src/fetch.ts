export { type FetchVisit, type FetchVisits, type FetchVisitsOptions, fetchVisits } from './visits/fetch.ts'
export type { Visit } from './visits/types.ts'
