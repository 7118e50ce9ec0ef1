// A block of a page as a module of its own: with the names that the page took for granted, compiled and run.
import { basename, join } from 'node:path'
import ts from 'typescript'
import { OPTIONS, programs } from './compiler.ts'
import { type Block, blocksOf, read, root } from './pages.ts'

/** What a block may use without declaring it; in order, because later lines use earlier names. */
const PRELUDE: readonly (readonly [name: string, code: string])[] = [
  ['IncomingMessage', "import type { IncomingMessage } from 'node:http'"],
  ['ServerResponse', "import type { ServerResponse } from 'node:http'"],
  ['assert', "import assert from 'node:assert/strict'"],
  ['createServer', "import { createServer } from 'node:http'"],
  ['SessionManager', "import { SessionManager } from 'coatcheck'"],
  ['nodeVisits', "import { nodeVisits } from 'coatcheck/node'"],
  ['fetchVisits', "import { fetchVisits } from 'coatcheck/fetch'"],
  ['MemoryStore', "import { MemoryStore } from 'coatcheck/stores/memory'"],
  ['exchange', "import { exchange } from '../../../test/support/exchange.mjs'"],
  ['ada', "const ada = { id: 42n, name: 'ada' }"],
  ['user', 'const user = ada'],
  ['store', 'const store = new MemoryStore()'],
  ['sessions', 'const sessions = new SessionManager({ store })'],
  ['session', 'const session = await sessions.create({ user: ada })'],
  ['key', 'const { key } = session'],
  ['secret', 'const { secret } = session'],
  ['visits', 'const visits = nodeVisits(sessions)'],
  ['webVisits', 'const webVisits = fetchVisits(sessions)'],
  ['request', 'const { request } = await exchange()'],
  ['response', 'const { response } = await exchange()'],
  ['visit', 'const visit = visits.of(request, response)'],
  ['express', "import express from 'express'"],
  ['app', 'const app = express()'],
  ['createClient', "import { createClient } from 'redis'"],
  ['client', 'const client = createClient()'],
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

const isCode = ({ language, markers }: Block) => (language === 'ts' || language === 'js') && !markers.has('initial')

export function modulesOf(page: string): Module[] {
  const modules: { blocks: Block[]; program: string | undefined }[] = []
  for (const block of blocksOf(page).filter(isCode)) {
    const program = block.markers.get('program')
    const earlier = block.markers.has('continues')
      ? modules.at(-1)
      : modules.find(module => program !== undefined && module.program === program)
    if (earlier) earlier.blocks.push(block)
    else modules.push({ blocks: [block], program })
  }
  return modules.map(({ blocks }) => {
    const [{ place, language }] = blocks as [Block]
    const own = blocks
      .map(({ code, markers }) => {
        // A file of the tests stands around the block, where that would be long in the page.
        const [before = '', after = ''] = (markers.get('tried by') ? read(markers.get('tried by')!) : '').split(
          '/* the block */',
        )
        return [before, code, after].join('\n')
      })
      .join('')
    const markers = new Map(blocks.flatMap(block => [...block.markers]))
    const code = markers.has('program') && page.startsWith('docs/guide/') ? inStart(own, initialOf([page])) : own
    return { place, page, language: language as 'ts' | 'js', code: preludeOf(code, language === 'ts') + code, markers }
  })
}

export const START = 'docs/start.md'
/** What guides add to the data of a session. */
const initialOf = (pages: readonly string[]) =>
  pages
    .flatMap(blocksOf)
    .flatMap(({ code, markers }) => (markers.has('initial') ? code : []))
    .join('')

/** The guides add routes to the program of the page Start, and lines to its `initial`: each where it says so. */
function inStart(routes: string, initial: string): string {
  const [{ code }] = modulesOf(START) as [Module]
  const places = ['// More routes go here.', "notice: '' })"] as const
  for (const place of places) if (code.split(place).length !== 2) throw new Error(`${START} has "${place}" once`)
  return code.replace(places[0], () => routes).replace(places[1], () => `notice: '',\n${initial} })`)
}

/** The program of Start with the code of several guides. */
export function guidesInStart(pages: readonly string[]): string {
  const blocks = pages.flatMap(blocksOf).filter(({ markers }) => markers.has('program'))
  return inStart(blocks.map(({ code }) => code).join('\n'), initialOf(pages))
}

/** The files beside the modules of a page: what it saves under a name, files of examples/ that it copies, and a store. */
export function filesOf(page: string): Map<string, string> {
  const anyStore = `import { MemoryStore } from 'coatcheck/stores/memory'
const database = new MemoryStore()
export class MyStore extends MemoryStore {
  constructor() {
    super()
    return database
  }
}
`
  const saved = modulesOf(page).filter(({ markers }) => markers.has('save'))
  const copied = blocksOf(page).flatMap(({ markers }) => markers.get('beside')?.split(', ') ?? [])
  return new Map([
    ['my-store.mjs', anyStore],
    ...copied.map(path => [basename(path), read(path)] as const),
    ...saved.map(module => [module.markers.get('save')!, module.code] as const),
  ])
}

// What plain JavaScript leaves open, and what it adds to the objects of frameworks.
const JAVASCRIPT: ts.CompilerOptions = {
  strict: false,
  alwaysStrict: true,
  noUncheckedIndexedAccess: false,
  exactOptionalPropertyTypes: false,
  noImplicitOverride: false,
}
const OURS = /does not exist on type '(?:typeof import|SessionManager|Session\b|UserSession|Visit|Fetch|\w+Store\b)/
const concernsUs = (code: number, message: string) => code !== 2339 || OURS.test(message)

const LENIENT = { ...OPTIONS, noUnusedLocals: false, noUnusedParameters: false, isolatedDeclarations: false }
const parsed: Parameters<typeof programs>[1] = new Map()
const PROGRAMS = { ts: programs(LENIENT, parsed), js: programs({ ...LENIENT, ...JAVASCRIPT }, parsed) }

/** What the compiler says about modules, as `PLACE: MESSAGE at CODE`. */
export function problemsOf(modules: readonly Module[]): string[] {
  return (['ts', 'js'] as const).flatMap(language => {
    const typed = language === 'ts'
    const some = modules.filter(module => module.language === language)
    if (some.length === 0) return []
    return diagnose(some, PROGRAMS[language])
      .filter(({ code, message }) => typed || concernsUs(code, message))
      .map(({ module, message, around }) => `${module.place}: ${message} at ${around}`)
  })
}

function diagnose(modules: readonly Module[], programOf: ReturnType<typeof programs>) {
  const path = (index: number) =>
    join(root, `test/libraries/block-${index}.${modules[index]!.language === 'ts' ? 'mts' : 'mjs'}`)
  const moved = (code: string) => `${code.replaceAll("'../../../test/support/", "'../support/")}\nexport {}\n`
  const files = new Map(modules.map(({ code }, index) => [path(index), moved(code)]))
  for (const page of new Set(modules.map(module => module.page)))
    for (const [name, code] of filesOf(page)) files.set(join(root, 'test/libraries', name), moved(code))
  const program = programOf([...files.keys()], files)
  return modules.flatMap((module, index) =>
    ts.getPreEmitDiagnostics(program, program.getSourceFile(path(index))).map(({ code, messageText, start = 0 }) => ({
      module,
      code,
      message: ts.flattenDiagnosticMessageText(messageText, '\n'),
      around: files.get(path(index))!.slice(start, start + 60),
    })),
  )
}

/** The code as Node.js 20 runs it. */
export const runnable = (code: string): string =>
  ts.transpileModule(code, {
    compilerOptions: { target: ts.ScriptTarget.ES2022, module: ts.ModuleKind.ESNext, verbatimModuleSyntax: true },
  }).outputText
