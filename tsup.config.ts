import { defineConfig } from 'tsup'

// One build of all entries with shared chunks, so that `instanceof` holds across subpaths (per module format).
export default defineConfig({
  entry: {
    index: 'src/index.ts',
    http: 'src/http.ts',
    fetch: 'src/fetch.ts',
    'stores/memory': 'stores/memory.ts',
    'stores/redis': 'stores/redis.ts',
    'stores/sql': 'stores/sql.ts',
    testing: 'stores/testing.ts',
  },
  format: ['esm', 'cjs'],
  target: 'node20',
  dts: true,
  splitting: true,
  clean: true,
  treeshake: true,
})
