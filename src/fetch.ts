export { type FetchVisits, type FetchVisitsOptions, type FetchVisit, fetchVisits } from './visits/fetch.ts'
export type { ClearSiteData } from './visits/setup.ts'
export type { Visit } from './visits/visit.ts'
