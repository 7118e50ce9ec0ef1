import { readdirSync, readFileSync } from 'node:fs'
import { basename, dirname, join, relative, resolve } from 'node:path'
import { defineConfig, type Options } from 'tsup'

const filesOf = (folder: string) =>
  readdirSync(folder)
    .filter(name => name.endsWith('.ts'))
    .map(name => `${folder}/${name}`)
const entries = (folder: string, prefix: string) =>
  Object.fromEntries(filesOf(folder).map(path => [`${prefix}${basename(path, '.ts')}`, path]))

// src/NAME.ts is the subpath NAME, stores/NAME.ts is stores/NAME: the files that only re-export.
const subpaths: Record<string, string> = {
  ...entries('src', ''),
  ...entries('stores', 'stores/'),
  'custom-store/testing': 'src/custom-store/index.ts',
}

/** The files that are loaded with one. */
function loadedWith(entry: string): Set<string> {
  const loaded = new Set([entry])
  for (const path of loaded)
    for (const [, names, name] of readFileSync(path, 'utf8').matchAll(
      /^(?:import|export) (?!type\b)([^'"`;]*?)from '(\.[^']+)'/gm,
    ))
      if (!/^\{(?:\s*type \w+(?: as \w+)?,?)*\s*\}/.test(names!)) loaded.add(join(dirname(path), name!))
  return loaded
}
const users = Object.values(subpaths).map(entry => ({ entry, loaded: loadedWith(entry) }))

/** The folders whose files become one file each: the rooms of src, and what several stores need. */
const FOLDERS = [
  ...readdirSync('src', { withFileTypes: true })
    .filter(entry => entry.isDirectory() && !['command', 'custom-store'].includes(entry.name))
    .map(({ name }) => `src/${name}`),
  'stores/shared',
  'stores/sql/base',
  // D1 speaks SQLite.
  'stores/sql/sqlite',
]

/** The subpaths that need node:http, which is not everywhere that the others run. */
const ON_NODE: readonly (string | undefined)[] = [subpaths.node, subpaths['device-bound']]

/**
 * The room that a file belongs to, but for files of visits that a single subpath loads. What only those on node:http
 * load is a room of its own: no other subpath may import that module.
 */
function roomOf(path: string): string | undefined {
  const folder = FOLDERS.includes(dirname(path)) ? dirname(path) : undefined
  const room = folder === 'stores/sql/base' ? 'sql' : folder && basename(folder)
  if (room !== 'visits') return room
  const [first, ...others] = users.filter(({ loaded }) => loaded.has(path)).map(({ entry }) => entry)
  if (first === undefined || (others.length === 0 && first !== subpaths.index)) return undefined
  return [first, ...others].every(entry => ON_NODE.includes(entry)) ? 'visits-node' : room
}
const rooms = new Map<string, string[]>()
for (const path of FOLDERS.flatMap(filesOf)) {
  const room = roomOf(path)
  if (room !== undefined) rooms.set(room, [...(rooms.get(room) ?? []), path])
}

/**
 * One file for each room (dist/core/manager.js), so that a stack trace says where the code belongs, and says the
 * same in the next release: esbuild names what several entries share by a hash. An entry of tsup has to be a file: the
 * first one of a room stands for all of them.
 */
const roomFiles: NonNullable<Options['esbuildPlugins']>[number] = {
  name: 'rooms',
  setup(build) {
    build.onResolve({ filter: /\.ts$/ }, ({ kind, path, importer, resolveDir, namespace }) => {
      const target = relative('.', resolve(resolveDir, path))
      const room = roomOf(target)
      if (kind === 'entry-point') return room === undefined ? undefined : { path: room, namespace: 'room' }
      const from = namespace === 'room' ? importer : roomOf(relative('.', importer))
      return room === undefined || room === from ? undefined : { path: `#room/${room}`, external: true }
    })
    build.onLoad({ filter: /.*/, namespace: 'room' }, ({ path }) => ({
      contents: rooms
        .get(path)!
        .map(file => `export * from './${basename(file)}'`)
        .join('\n'),
      resolveDir: dirname(rooms.get(path)![0]!),
    }))
  },
}

/** Lets a file of dist import the files of the rooms by their paths. */
const roomPaths: NonNullable<Options['plugins']>[number] = {
  name: 'room-paths',
  renderChunk(code, { path }) {
    const extension = this.format === 'cjs' ? 'cjs' : 'js'
    return {
      code: code.replaceAll(/(["'])#room\/([\w-]+)\1/g, (_, quote, room) => {
        const to = relative(dirname(path), resolve('dist/core', `${room}.${extension}`))
        return `${quote}${to.startsWith('.') ? to : `./${to}`}${quote}`
      }),
    }
  },
}
/**
 * esbuild turns `class X` that names itself into `var X = class _X`, and `_X` is what stack traces and `inspect` show.
 * Its `keepNames` would give the name back by a call for each function made at run time, on the read path too.
 */
const classNames: NonNullable<Options['plugins']>[number] = {
  name: 'class-names',
  renderChunk: code => ({
    code: [...code.matchAll(/^var (\w+) = class _\1\b/gm)].reduce(
      (text, [, name]) => text.replaceAll(new RegExp(`(?<![\\w$])_${name}\\b`, 'g'), name!),
      code,
    ),
  }),
}

/**
 * What would only make the package larger: comments of members, which the declarations have too (no template begins a line
 * like that), and a second copy of the suite, which nobody bundles.
 */
const smaller: NonNullable<Options['plugins']>[number] = {
  name: 'smaller',
  renderChunk(code, { path }) {
    const [, names] = /^export \{([^}]*)\};?\s*$/m.exec(code) ?? []
    if (this.format === 'esm' && path.endsWith('custom-store/testing.js') && names !== undefined)
      return { code: `export {${names.replaceAll(/\w+ as /g, '')}} from './testing.cjs';\n` }
    return { code: code.replaceAll(/^ *(?:\/\*\*(?!\/)[\s\S]*?\*\/|\/\/ .*)\n/gm, '') }
  },
}

// One build of all entries, so that `instanceof` holds across subpaths (per module format).
const library: Options = {
  entry: { ...subpaths, ...Object.fromEntries([...rooms].map(([room, [first]]) => [`core/${room}`, first!])) },
  format: ['esm', 'cjs'],
  target: 'node20',
  dts: { entry: subpaths },
  splitting: true,
  // What the other build writes at the same time stays.
  clean: ['!command.js'],
  treeshake: true,
  removeNodeProtocol: false,
  esbuildPlugins: [roomFiles],
  plugins: [roomPaths, classNames, smaller],
}
/** The command imports the package by its name, as a program of its users does: it is no part of what they load. */
const command: Options = {
  entry: { command: 'src/command/bin.ts' },
  format: ['esm'],
  target: 'node20',
  external: [/^coatcheck(?:\/|$)/],
  clean: false,
  treeshake: true,
  removeNodeProtocol: false,
}

export default defineConfig([library, command])
