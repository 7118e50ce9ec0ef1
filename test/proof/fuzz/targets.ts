import type { Target } from './target.ts'
import { DATA } from './targets-data.ts'
import { OPTIONS } from './targets-options.ts'
import { REQUESTS } from './targets-requests.ts'
import { STORED } from './targets-stored.ts'

export const TARGETS: readonly Target[] = [...REQUESTS, ...OPTIONS, ...STORED, ...DATA]
