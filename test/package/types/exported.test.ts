import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import ts from 'typescript'
import { expect, it } from 'vitest'
import { OPTIONS, programs } from '../../support/compiler.ts'
import { build } from '../../support/scripts/build.mjs'

const root = fileURLToPath(new URL('../../..', import.meta.url))
const under = (path: string) => path.startsWith(`${root}dist/`)

it('no exported type mentions a type that no entry exports', async () => {
  // As users get them: without bodies and private members, with inferred types written out.
  await build()
  const { exports } = JSON.parse(readFileSync(`${root}package.json`, 'utf8'))
  const entries = Object.values<any>(exports).flatMap(({ import: entry }) => (entry ? [join(root, entry.types)] : []))
  expect(entries.length).toBeGreaterThanOrEqual(8)
  const program = programs(OPTIONS)(entries)
  const checker = program.getTypeChecker()
  const resolved = (symbol: ts.Symbol) =>
    symbol.flags & ts.SymbolFlags.Alias ? checker.getAliasedSymbol(symbol) : symbol
  const exported = new Map<ts.Symbol, string>()
  for (const entry of entries)
    for (const symbol of checker.getExportsOfModule(checker.getSymbolAtLocation(program.getSourceFile(entry)!)!))
      exported.set(resolved(symbol), `${entry.slice(root.length)} ${symbol.name}`)
  expect(exported.size).toBeGreaterThan(60)

  const missing = new Set<string>()
  for (const [symbol, name] of exported) {
    const visit = (node: ts.Node): void => {
      // What only subclasses see is no part of what a user can name.
      if (
        ts.canHaveModifiers(node) &&
        ts.getModifiers(node)?.some(each => each.kind === ts.SyntaxKind.ProtectedKeyword)
      )
        return
      const mentioned = ts.isTypeReferenceNode(node)
        ? node.typeName
        : ts.isExpressionWithTypeArguments(node)
          ? node.expression
          : ts.isTypeQueryNode(node)
            ? node.exprName
            : ts.isImportTypeNode(node)
              ? node.qualifier
              : undefined
      const found = mentioned && checker.getSymbolAtLocation(mentioned)
      if (found) {
        const target = resolved(found)
        const isOurs = target.declarations?.some(each => under(each.getSourceFile().fileName)) ?? false
        const isParameter = (target.flags & ts.SymbolFlags.TypeParameter) !== 0
        const isBase = ts.isHeritageClause(node.parent) && ts.isClassDeclaration(node.parent.parent)
        if (isOurs && !isParameter && !exported.has(target)) {
          // A base class of our own is not named by users, but they call its methods.
          if (isBase) for (const declaration of target.declarations ?? []) visit(declaration)
          else missing.add(`${name} mentions ${target.name}`)
        }
      }
      ts.forEachChild(node, visit)
    }
    for (const declaration of symbol.declarations ?? []) visit(declaration)
  }
  expect([...missing].sort()).toEqual([])
}, 180_000)
