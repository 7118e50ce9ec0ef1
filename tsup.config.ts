import { readdirSync } from 'node:fs'
import { basename } from 'node:path'
import { defineConfig } from 'tsup'

const entries = (folder: string, prefix: string) =>
  Object.fromEntries(
    readdirSync(folder)
      .filter(name => name.endsWith('.ts'))
      .map(name => [`${prefix}${basename(name, '.ts')}`, `${folder}/${name}`]),
  )

export default defineConfig([
  {
    // src/NAME.ts is the subpath NAME, stores/NAME.ts is stores/NAME: the files that only re-export. All are built at
    // once, so that `instanceof` holds across subpaths (per module format).
    entry: {
      ...entries('src', ''),
      ...entries('stores', 'stores/'),
      'custom-store/testing': 'src/custom-store/testing.ts',
    },
    format: ['esm', 'cjs'],
    target: 'node20',
    dts: true,
    splitting: true,
    // What the other build writes at the same time stays.
    clean: ['!command.js'],
    treeshake: true,
    removeNodeProtocol: false,
  },
  {
    // The command imports the package by its name, as a program of its users does: it is no part of what they load.
    entry: { command: 'src/command/bin.ts' },
    format: ['esm'],
    target: 'node20',
    external: [/^coatcheck(?:\/|$)/],
    clean: false,
    treeshake: true,
    removeNodeProtocol: false,
  },
])
