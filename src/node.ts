export { type NodeVisits, type NodeVisitsOptions, nodeVisits } from './visits/node.ts'
export type { SecureOptions } from './visits/secure.ts'
export type { ClearSiteData } from './visits/setup.ts'
export type { Visit } from './visits/types.ts'
