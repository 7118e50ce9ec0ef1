// @ts-check
import ts from 'typescript'

const { options } = ts.convertCompilerOptionsFromJson(
  { target: 'ES2022', module: 'ES2022', verbatimModuleSyntax: true, removeComments: true },
  '.',
)

/**
 * Makes JavaScript of a TypeScript module. Classes keep their names: a bundler that renames one which names itself
 * (`_X`) shows that name in stack traces and in `inspect`.
 * @returns {import('rollup').Plugin}
 */
export const stripTypes = () => ({
  name: 'strip-types',
  transform: (code, id) =>
    id.endsWith('.ts')
      ? { code: ts.transpileModule(code, { compilerOptions: options, fileName: id }).outputText, map: null }
      : null,
})
