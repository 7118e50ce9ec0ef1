import type { Engine } from './engine.ts'

/** One process that nothing can be taken from but its turns of the event loop. */
export const memory: Engine = {
  name: 'memory',
  needs: 'memory',
  clients: 8,
  hasProcesses: false,
  start: async () => ({ openings: [{ kind: 'memory' }], faults: {}, rules: {}, stop: async () => {} }),
}
