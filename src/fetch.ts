export { type FetchEdge, type FetchEdgeOptions, type FetchVisit, fetchEdge } from './edge/fetch.ts'
export type { ClearSiteData } from './edge/setup.ts'
export type { Visit } from './edge/visit.ts'
