// @ts-check
// src/NAME.ts is the subpath NAME, stores/NAME.ts is stores/NAME: the files that only re-export. What several of them
// load, and the core, becomes one file for each room of src (dist/core/manager.js). No hash is in a name, so a stack
// trace says where the code belongs and says the same in the next release. One file for each source would name it more
// closely, but the package would take twice the time to load.
import { readdirSync } from 'node:fs'
import { builtinModules } from 'node:module'
import { dirname, relative } from 'node:path'
import { dts } from 'rollup-plugin-dts'
import { stripTypes } from './test/scripts/strip-types.mjs'

const entries = (/** @type {string} */ folder, /** @type {string} */ prefix) =>
  Object.fromEntries(
    readdirSync(folder)
      .filter(name => name.endsWith('.ts'))
      .map(name => [`${prefix}${name.slice(0, -3)}`, `${folder}/${name}`]),
  )
const input = { ...entries('src', ''), ...entries('stores', 'stores/') }

/**
 * The entry files from which a module is reached.
 * @param {string} id
 * @param {import('rollup').ManualChunkMeta} meta
 */
function entriesOf(id, { getModuleInfo }) {
  const reached = new Set([id])
  for (const each of reached) for (const importer of getModuleInfo(each)?.importers ?? []) reached.add(importer)
  return [...reached].filter(each => getModuleInfo(each)?.isEntry).map(each => relative('.', each))
}

/**
 * The chunk of a module; what a single subpath loads stays in the file of that subpath.
 * @type {import('rollup').GetManualChunk}
 */
function room(id, meta) {
  const path = relative('.', id)
  if (Object.values(input).includes(path)) return undefined
  const only = entriesOf(id, meta)
  if (only.length === 1 && only[0] !== input.index) return undefined
  return relative('src', dirname(path))
}

/** @type {import('rollup').RollupOptions} */
const common = {
  input,
  external: ['cookie', ...builtinModules.map(name => `node:${name}`)],
  // A warning is a mistake here: rooms in a circle, an import that is not found.
  onLog(level, log) {
    if (level === 'warn') throw new Error(log.message, { cause: log })
  },
}
/** @type {(extension: string) => import('rollup').OutputOptions} */
const output = extension => ({
  dir: 'dist',
  entryFileNames: `[name]${extension}`,
  chunkFileNames: `core/[name]${extension}`,
  minifyInternalExports: false,
  externalLiveBindings: false,
  generatedCode: 'es2015',
  hoistTransitiveImports: false,
})

export default [
  {
    ...common,
    plugins: [stripTypes()],
    treeshake: { moduleSideEffects: false },
    output: [
      { ...output('.js'), format: 'es', manualChunks: room },
      { ...output('.cjs'), format: 'cjs', manualChunks: room },
    ],
  },
  {
    ...common,
    // Its releases after 6.2 import types by way of other entry files (fetch.d.ts from http.d.ts, which needs the types
    // of Node.js): package.json holds it there.
    plugins: [dts()],
    output: [output('.d.ts'), output('.d.cts')],
  },
]
