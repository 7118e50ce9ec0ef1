export { type NodeVisits, type NodeVisitsOptions, nodeVisits } from './visits/node.ts'
export type { SecureOptions } from './visits/secure.ts'
export type { Visit } from './visits/types.ts'
