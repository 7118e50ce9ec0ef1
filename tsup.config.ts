import { readdirSync } from 'node:fs'
import { basename } from 'node:path'
import { defineConfig } from 'tsup'

const entries = (folder: string, prefix: string) =>
  Object.fromEntries(
    readdirSync(folder)
      .filter(name => name.endsWith('.ts'))
      .map(name => [`${prefix}${basename(name, '.ts')}`, `${folder}/${name}`]),
  )

// src/NAME.ts is the subpath NAME, stores/NAME.ts is stores/NAME: the files that only re-export. All are built at once, so
// that `instanceof` holds across subpaths (per module format).
const library = {
  entry: {
    ...entries('src', ''),
    ...entries('stores', 'stores/'),
    'custom-store/testing': 'src/custom-store/testing.ts',
  },
  target: 'node20',
  splitting: true,
  treeshake: true,
  removeNodeProtocol: false,
} as const

export default defineConfig([
  // What the other builds write at the same time stays.
  { ...library, format: 'esm', dts: true, clean: ['!command.js', '!cjs/**'] },
  // A folder of its own, with the same names: files that are nearly alike lie side by side in the tarball, which is a fifth
  // smaller for it.
  { ...library, format: 'cjs', outDir: 'dist/cjs', outExtension: () => ({ js: '.js' }), clean: true },
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
