// A block of a page as a module of its own: with the names that the page took for granted, compiled and run.
import { join } from 'node:path'
import ts from 'typescript'
import { type Block, blocksOf, read, root } from './pages.ts'

/** What a block may use without declaring it; in order, because later lines use earlier names. */
const PRELUDE: readonly (readonly [name: string, code: string])[] = [
  ['IncomingMessage', "import type { IncomingMessage } from 'node:http'"],
  ['ServerResponse', "import type { ServerResponse } from 'node:http'"],
  ['assert', "import assert from 'node:assert/strict'"],
  ['createServer', "import { createServer } from 'node:http'"],
  ['SessionManager', "import { SessionManager } from 'coatcheck'"],
  ['httpEdge', "import { httpEdge } from 'coatcheck/http'"],
  ['fetchEdge', "import { fetchEdge } from 'coatcheck/fetch'"],
  ['MemoryStore', "import { MemoryStore } from 'coatcheck/stores/memory'"],
  ['exchange', "import { exchange } from '../../test/support/exchange.mjs'"],
  ['ada', "const ada = { id: 42n, name: 'ada' }"],
  ['user', 'const user = ada'],
  ['store', 'const store = new MemoryStore()'],
  ['sessions', 'const sessions = new SessionManager({ store })'],
  ['session', 'const session = await sessions.create({ user: ada })'],
  ['key', 'const { key } = session'],
  ['secret', 'const { secret } = session'],
  ['visitOf', 'const visitOf = httpEdge(sessions)'],
  ['edge', 'const edge = fetchEdge(sessions)'],
  ['request', 'const { request } = await exchange()'],
  ['response', 'const { response } = await exchange()'],
  ['visit', 'const visit = visitOf(request, response)'],
]
const USES = new Map(PRELUDE.map(([name, code]) => [name, names(code).used]))

/** The names that a piece of code declares, parameters included, and those that it uses. */
function names(code: string) {
  const declared = new Set<string>()
  const used = new Set<string>()
  const visit = (node: ts.Node): void => {
    if (ts.isIdentifier(node)) {
      const { parent } = node
      const isDeclaration =
        (ts.isVariableDeclaration(parent) || ts.isParameter(parent) || ts.isBindingElement(parent)) &&
        parent.name === node
      const isImport = ts.isImportSpecifier(parent) || ts.isImportClause(parent) || ts.isNamespaceImport(parent)
      const isNamed = (ts.isFunctionDeclaration(parent) || ts.isClassDeclaration(parent)) && parent.name === node
      const isProperty =
        (ts.isPropertyAccessExpression(parent) || ts.isPropertyAssignment(parent) || ts.isMethodDeclaration(parent)) &&
        parent.name === node
      if (isDeclaration || isImport || isNamed) declared.add(node.text)
      else if (!isProperty) used.add(node.text)
    }
    ts.forEachChild(node, visit)
  }
  visit(ts.createSourceFile('block.mts', code, ts.ScriptTarget.ES2022, true))
  return { declared, used }
}

function preludeOf(code: string, isTyped: boolean): string {
  const { declared, used } = names(code)
  const wanted = new Set<string>()
  const want = (name: string) => {
    if (declared.has(name) || wanted.has(name) || !USES.has(name)) return
    wanted.add(name)
    for (const other of USES.get(name)!) want(other)
  }
  for (const name of used) want(name)
  return PRELUDE.filter(([name, line]) => wanted.has(name) && (isTyped || !line.startsWith('import type')))
    .map(([, line]) => `${line}\n`)
    .join('')
}

/** The modules of a page: blocks that continue one another, or belong to one program, are one. */
export interface Module {
  readonly place: string
  readonly page: string
  readonly language: 'ts' | 'js'
  readonly code: string
  readonly markers: ReadonlyMap<string, string>
}

export function modulesOf(page: string): Module[] {
  const modules: { blocks: Block[]; program: string | undefined }[] = []
  for (const block of blocksOf(page).filter(({ language }) => language === 'ts' || language === 'js')) {
    const program = block.markers.get('program')
    const earlier = block.markers.has('continues')
      ? modules.at(-1)
      : modules.find(module => program !== undefined && module.program === program)
    if (earlier) earlier.blocks.push(block)
    else modules.push({ blocks: [block], program })
  }
  return modules.map(({ blocks }) => {
    const [{ place, language }] = blocks as [Block]
    const code = blocks
      .map(({ code, markers }) => `${markers.get('before') ?? ''}\n${code}\n${markers.get('then') ?? ''}\n`)
      .join('')
    const markers = new Map(blocks.flatMap(block => [...block.markers]))
    return { place, page, language: language as 'ts' | 'js', code: preludeOf(code, language === 'ts') + code, markers }
  })
}

/** The files beside the modules of a page: what the page saves under a name, and the store that is not of the page. */
export function filesOf(page: string): Map<string, string> {
  const anyStore =
    "import { MemoryStore } from 'coatcheck/stores/memory'\nexport class MyStore extends MemoryStore {}\n"
  const saved = modulesOf(page).filter(({ markers }) => markers.has('save'))
  return new Map([
    ['my-store.mjs', anyStore],
    ...saved.map(module => [module.markers.get('save')!, module.code] as const),
  ])
}

/** What the compiler says about modules, as `PLACE: MESSAGE at CODE`. */
export function problemsOf(modules: readonly Module[]): string[] {
  const { options } = ts.parseJsonConfigFileContent(JSON.parse(read('tsconfig.json')), ts.sys, root)
  Object.assign(options, { noUnusedLocals: false, noUnusedParameters: false, isolatedDeclarations: false })
  const path = (index: number, { language }: Module) =>
    join(root, `test/support/block-${index}.${language === 'ts' ? 'mts' : 'mjs'}`)
  const moved = (code: string) => code.replaceAll("'../../test/support/", "'./")
  const files = new Map(modules.map((module, index) => [path(index, module), `${moved(module.code)}\nexport {}\n`]))
  for (const page of new Set(modules.map(module => module.page)))
    for (const [name, code] of filesOf(page)) files.set(join(root, 'test/support', name), moved(code))
  const host = ts.createCompilerHost(options)
  const { fileExists, readFile } = host
  host.fileExists = file => files.has(file) || fileExists.call(host, file)
  host.readFile = file => files.get(file) ?? readFile.call(host, file)
  const program = ts.createProgram([...files.keys()], options, host)
  // Plain JavaScript writes no types, so its parameters have none.
  const IMPLICIT_ANY = [7005, 7006, 7019, 7031, 7034, 7053]
  return modules.flatMap((module, index) =>
    ts
      .getPreEmitDiagnostics(program, program.getSourceFile(path(index, module)))
      .filter(({ code }) => module.language === 'ts' || !IMPLICIT_ANY.includes(code))
      .map(({ messageText, start = 0 }) => {
        const around = files.get(path(index, module))!.slice(start, start + 60)
        return `${module.place}: ${ts.flattenDiagnosticMessageText(messageText, '\n')} at ${around}`
      }),
  )
}

/** The code as Node.js 20 runs it. */
export const runnable = (code: string): string =>
  ts.transpileModule(code, {
    compilerOptions: { target: ts.ScriptTarget.ES2022, module: ts.ModuleKind.ESNext, verbatimModuleSyntax: true },
  }).outputText
