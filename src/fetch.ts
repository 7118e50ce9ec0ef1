export { type FetchEdge, type FetchEdgeOptions, type FetchVisit, fetchEdge } from './edge/fetch.ts'
export type { ClearSiteData, Visit } from './edge/visit.ts'
