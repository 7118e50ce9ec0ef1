// What the pages list is compared with the sources.
import { inspect } from 'node:util'
import { DEFAULTS, presets, SessionError, type SessionErrorCode } from 'coatcheck'
import ts from 'typescript'
import { describe, expect, it } from 'vitest'
import { PAGES, read, table } from '../../support/pages.ts'

const plain = (cell: string | undefined) => (cell ?? '').replace(/^\[(.*)\]\(.*\)$/, '$1').replaceAll('`', '')

const statements = (path: string) =>
  ts.createSourceFile(path, read(path), ts.ScriptTarget.Latest, true).statements as readonly ts.Statement[]

/** The interface or class of that name in a source. */
function declared(path: string, name: string): ts.InterfaceDeclaration | ts.ClassDeclaration {
  const found = statements(path).find(
    each => (ts.isInterfaceDeclaration(each) || ts.isClassDeclaration(each)) && each.name?.text === name,
  )
  if (found === undefined) throw new Error(`${path} declares no ${name}`)
  return found as ts.InterfaceDeclaration | ts.ClassDeclaration
}

/** The members of a union of types with that name in a source. */
function alternatives(path: string, name: string): readonly ts.TypeNode[] {
  const found = statements(path).find(each => ts.isTypeAliasDeclaration(each) && each.name.text === name)
  const members = (type: ts.TypeNode): readonly ts.TypeNode[] => {
    if (ts.isParenthesizedTypeNode(type)) return members(type.type)
    // What all alternatives have in common comes first.
    if (ts.isIntersectionTypeNode(type)) return members(type.types.at(-1)!)
    return ts.isUnionTypeNode(type) ? type.types : [type]
  }
  return members((found as ts.TypeAliasDeclaration).type)
}

/** The texts of a literal type, or of a union of them. */
const texts = (type: ts.TypeNode) => [...type.getText().matchAll(/'([^']+)'/g)].map(match => match[1]!)

/** The members of an interface, with the `@default` of each. */
const members = (path: string, name: string) =>
  new Map(
    [...declared(path, name).members].map(member => {
      const tag = ts.getJSDocTags(member).find(({ tagName }) => tagName.text === 'default')
      return [member.name!.getText(), ts.getTextOfJSDocComment(tag?.comment)?.trim()]
    }),
  )

/** The public methods of an interface or a class, each once. */
const methods = (path: string, name: string) => [
  ...new Set(
    [...declared(path, name).members]
      .filter(member => ts.isMethodSignature(member) || ts.isMethodDeclaration(member))
      .map(member => member.name.getText())
      .filter(method => !/^[#[]/.test(method)),
  ),
]

describe('the tables of options', () => {
  const SQL = ['stores/sql/base/schema.ts', 'SqlStoreOptions'] as const
  it.each<[page: string, heading: string, ...sources: (readonly [path: string, type: string])[]]>([
    ['docs/options.md', 'Manager options', ['src/manager/options.ts', 'SessionOptions']],
    [
      'docs/options.md',
      'Options of nodeVisits',
      ['src/visits/setup.ts', 'VisitOptions'],
      ['src/visits/secure.ts', 'SecureOptions'],
    ],
    ['docs/options.md', 'Cookie options', ['src/visits/cookie.ts', 'CookieOptions']],
    ['docs/connect.md', 'Options', ['src/connect/options.ts', 'ConnectStoreOptions']],
    ['docs/stores/memory.md', 'Options', ['stores/memory/store.ts', 'MemoryStoreOptions']],
    ['docs/stores/redis.md', 'Options', ['stores/redis/store.ts', 'RedisStoreOptions']],
    ['docs/stores/mysql.md', 'Options', SQL],
    ['docs/stores/sqlite.md', 'Options', SQL],
    ['docs/stores/postgresql.md', 'Options', SQL, ['stores/sql/postgres/store.ts', 'PostgresOptions']],
  ])('list every option: %s, %s', (page, heading, ...sources) => {
    const options = sources.flatMap(([path, type]) => [...members(path, type).keys()])
    expect(table(page, heading).map(([option]) => plain(option))).toEqual(options)
  })

  it('show the defaults of the manager and of the cookie, and the presets', () => {
    const page = 'docs/options.md'
    const rows = new Map(table(page, 'Manager options').map(([option, ...cells]) => [plain(option), cells]))
    for (const [option, [shown]] of rows) {
      const value = (DEFAULTS as Record<string, unknown>)[option]
      // Told in words: its default follows idleTimeout.
      if (value !== undefined && option !== 'touchInterval')
        expect(`${option} ${plain(shown)}`).toBe(`${option} ${inspect(value).replace('_', '')}`)
    }
    expect(rows.get('limit')![1]).toContain(`is \`'${DEFAULTS.onLimit}'\` or`)
    expect(new Map(table(page, 'Cookie options').map(([option, shown]) => [plain(option), plain(shown)]))).toEqual(
      members('src/visits/cookie.ts', 'CookieOptions'),
    )
    const shown = [...read(page).matchAll(/^\| `(\w+)` \| `'(\w+)'` \| `'(\w+)'` \|/gm)].map(match => match.slice(1, 4))
    expect(shown).toEqual(
      Object.entries(presets).map(([name, { idleTimeout, absoluteTimeout }]) => [name, idleTimeout, absoluteTimeout]),
    )
  })
})

describe('the docstrings of the options', () => {
  const { onLimit, cookie, rememberCookie, ...rest } = DEFAULTS
  it.each([
    ['src/manager/options.ts', 'SessionOptions', { ...rest, limit: onLimit }],
    ['src/visits/cookie.ts', 'CookieOptions', cookie],
    ['src/visits/setup.ts', 'VisitOptions', { rememberCookie }],
  ] as const)('in %s tell the defaults of %s', (path, type, defaults) => {
    const told = [...members(path, type)].filter(([, value]) => /^(?:['\d]|true$|false$|\{ )/.test(value ?? ''))
    // A condition may follow. A tenth of idleTimeout is told in words.
    const values = told.map(([name, value]) => [name, value!.replace(/ if .*/, '')])
    const shown = Object.entries(defaults).filter(([name]) => name !== 'touchInterval')
    expect(Object.fromEntries(values)).toEqual(
      Object.fromEntries(shown.map(([name, value]) => [name, inspect(value, { numericSeparator: false })])),
    )
  })
})

describe('the page of errors and events', () => {
  const page = 'docs/errors-and-events.md'

  it('lists every error, with its status', () => {
    const codes = alternatives('src/contract/errors.ts', 'SessionErrorCode').flatMap(texts)
    const rows = table(page, 'Errors')
    expect(rows.map(([code]) => plain(code)).sort()).toEqual(codes.sort())
    for (const [code, status] of rows)
      expect(new SessionError(plain(code) as SessionErrorCode, '').status).toBe(Number(status))
  })

  it('lists every event, with its fields', () => {
    const expected = alternatives('src/session/events.ts', 'SessionEvent').flatMap(event => {
      const [type, ...fields] = (event as ts.TypeLiteralNode).members as unknown as ts.PropertySignature[]
      const names = fields.map(field => field.name.getText())
      return texts(type!.type!).map(each => `${each}: ${names.join(', ')}`)
    })
    expect(expected.length).toBeGreaterThan(10)
    const shown = table(page, 'Events').map(([type, fields]) => `${plain(type)}: ${plain(fields)}`)
    expect(shown.sort()).toEqual(expected.sort())
  })
})

describe('the tables of all pages', () => {
  it.each([
    ['README.md', 'Stores'],
    ['docs/stores.md', 'Choose a store'],
  ])('name stores that exist under their subpath, or in their example: %s', async (page, heading) => {
    const rows = table(page, heading)
    expect(rows.length).toBeGreaterThanOrEqual(5)
    const subpaths: Record<string, () => Promise<object>> = {
      'coatcheck/stores/memory': () => import('coatcheck/stores/memory'),
      'coatcheck/stores/redis': () => import('coatcheck/stores/redis'),
      'coatcheck/stores/postgres': () => import('coatcheck/stores/postgres'),
      'coatcheck/stores/mysql': () => import('coatcheck/stores/mysql'),
      'coatcheck/stores/sqlite': () => import('coatcheck/stores/sqlite'),
      'coatcheck/stores/d1': () => import('coatcheck/stores/d1'),
      'examples/kv-store.mjs': () => import('../../../examples/kv-store.mjs'),
    }
    for (const [name, subpath] of rows) expect(Object.keys(await subpaths[plain(subpath)]!())).toContain(plain(name))
  })

  it.each(PAGES)('have as many cells in each row as in the head: %s', page => {
    let width: number | null = null
    for (const line of read(page).split('\n')) {
      const cells = line.startsWith('|') ? line.split('|').length : null
      if (cells !== null && width !== null) expect(cells, line).toBe(width)
      width = cells
    }
  })
})

/** What a column of calls names: `get({ touch })` is get. */
const methodsIn = (rows: string[][]) => [...new Set(rows.flatMap(([cell]) => cell!.match(/(?<=`)\w+(?=[(`])/g) ?? []))]

describe('the tables of methods', () => {
  it.each<[page: string, heading: string, path: string, type: string, beside: readonly string[]]>([
    [
      'docs/stores/your-own.md',
      'The contract',
      'src/contract/store.ts',
      'Store',
      ['sweep', 'scan', 'count', 'shard', 'close'],
    ],
    ['docs/methods.md', 'Of a visit', 'src/visits/types.ts', 'Visit', []],
    ['docs/methods.md', 'Of a manager', 'src/manager/manager.ts', 'SessionManager', []],
  ])('name every one: %s, %s', (page, heading, path, type, beside) => {
    // Beside the methods of a visit stand two properties.
    const named = methodsIn(table(page, heading)).filter(name => name !== 'headers' && name !== 'cookies')
    expect([...named, ...beside].sort()).toEqual(methods(path, type).sort())
  })
})
