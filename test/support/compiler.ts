// TypeScript in this process: what several programs of a test file have in common is read and parsed once.
import { fileURLToPath } from 'node:url'
import ts from 'typescript'

const root = fileURLToPath(new URL('../../', import.meta.url))

/** The project's own options, as `npm run types` takes them. */
export const OPTIONS: ts.CompilerOptions = ts.parseJsonConfigFileContent(
  ts.readConfigFile(`${root}tsconfig.json`, ts.sys.readFile).config,
  ts.sys,
  root,
).options

/**
 * Programs with the same options. Of `texts`, by their paths, each has its own; all other files are those on disk. They may
 * share what was `parsed` with others whose options make no difference to a file by itself.
 */
export function programs(
  options: ts.CompilerOptions,
  parsed = new Map<string, ts.SourceFile | undefined>(),
): (files: readonly string[], texts?: ReadonlyMap<string, string>) => ts.Program {
  return (files, texts = new Map()) => {
    const host = ts.createCompilerHost(options)
    const { fileExists, readFile, getSourceFile } = host
    host.fileExists = path => texts.has(path) || fileExists.call(host, path)
    host.readFile = path => texts.get(path) ?? readFile.call(host, path)
    host.getSourceFile = (path, ...how) => {
      if (texts.has(path)) return getSourceFile.call(host, path, ...how)
      if (!parsed.has(path)) parsed.set(path, getSourceFile.call(host, path, ...how))
      return parsed.get(path)
    }
    return ts.createProgram(files, options, host)
  }
}

/** What is wrong with these files of a program. */
export const problemsIn = (program: ts.Program, files: readonly ts.SourceFile[]): ts.Diagnostic[] =>
  files.flatMap(file => [...program.getSyntacticDiagnostics(file), ...program.getSemanticDiagnostics(file)])

export const messageOf = ({ messageText }: ts.Diagnostic): string => ts.flattenDiagnosticMessageText(messageText, '\n')
