import { readdirSync } from 'node:fs'
import { defineConfig, type Options } from 'tsup'

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

const entries = (folder: string, prefix: string) =>
  Object.fromEntries(
    readdirSync(folder)
      .filter(name => name.endsWith('.ts'))
      .map(name => [`${prefix}${name.slice(0, -3)}`, `${folder}/${name}`]),
  )

// One build of all entries with shared chunks, so that `instanceof` holds across subpaths (per module format).
export default defineConfig({
  // src/NAME.ts is the subpath NAME, stores/NAME.ts is stores/NAME: the files that only re-export.
  entry: { ...entries('src', ''), ...entries('stores', 'stores/') },
  format: ['esm', 'cjs'],
  target: 'node20',
  dts: true,
  splitting: true,
  clean: true,
  treeshake: true,
  plugins: [classNames],
})
