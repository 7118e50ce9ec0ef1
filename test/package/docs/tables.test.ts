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

describe('the page of options', () => {
  const page = 'docs/options.md'

  it('lists every option of the manager, with its default', () => {
    const rows = table(page, 'Manager options')
    expect(rows.map(([option]) => plain(option))).toEqual([
      ...members('src/manager/options.ts', 'SessionOptions').keys(),
    ])
    for (const [option, shown] of rows) {
      const value = (DEFAULTS as Record<string, unknown>)[plain(option)]
      // Told in words: its default follows idleTimeout.
      if (value !== undefined && option !== '`touchInterval`')
        expect(`${option} ${plain(shown)}`).toBe(`${option} ${inspect(value).replace('_', '')}`)
    }
    const limit = rows.find(([option]) => plain(option) === 'limit')!
    expect(limit[2]).toContain(`is \`'${DEFAULTS.onLimit}'\` or`)
  })

  it('lists the presets', () => {
    expect(table(page, 'Manager options').length).toBeGreaterThan(10)
    const shown = [...read(page).matchAll(/^\| `(\w+)` \| `'(\w+)'` \| `'(\w+)'` \|/gm)].map(match => match.slice(1, 4))
    expect(shown).toEqual(
      Object.entries(presets).map(([name, { idleTimeout, absoluteTimeout }]) => [name, idleTimeout, absoluteTimeout]),
    )
  })

  it('lists every option of nodeVisits', () => {
    const options = [
      ...members('src/visits/setup.ts', 'VisitOptions'),
      ...members('src/visits/secure.ts', 'SecureOptions'),
    ]
    expect(table(page, 'Options of nodeVisits').map(([option]) => plain(option))).toEqual(options.map(([name]) => name))
  })

  it('lists every option of the cookie, with its default', () => {
    const options = members('src/visits/cookie.ts', 'CookieOptions')
    expect(table(page, 'Cookie options').map(([option, shown]) => [plain(option), plain(shown)])).toEqual([...options])
  })

  it.each([
    ['memory', 'stores/memory/store.ts', 'MemoryStoreOptions'],
    ['redis', 'stores/redis/store.ts', 'RedisStoreOptions'],
  ])('has beside it the page of the %s store, which lists that store’s options', (name, path, type) => {
    expect(table(`docs/stores/${name}.md`, 'Options').map(([option]) => plain(option))).toEqual([
      ...members(path, type).keys(),
    ])
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

describe('the other tables', () => {
  it.each([
    ['docs/connect.md', 'Options', [['src/connect/options.ts', 'ConnectStoreOptions']]],
    ['docs/stores/mysql.md', 'Options', [['stores/sql/base/schema.ts', 'SqlStoreOptions']]],
    ['docs/stores/sqlite.md', 'Options', [['stores/sql/base/schema.ts', 'SqlStoreOptions']]],
    [
      'docs/stores/postgresql.md',
      'Options',
      [
        ['stores/sql/base/schema.ts', 'SqlStoreOptions'],
        ['stores/sql/postgres/store.ts', 'PostgresOptions'],
      ],
    ],
  ] as const)('of options in %s, under %s, are complete', (page, heading, sources) => {
    const options = sources.flatMap(([path, type]) => [...members(path, type).keys()])
    expect(table(page, heading).map(([option]) => plain(option))).toEqual(options)
  })

  it('name every method of a store', () => {
    const verbs = methodsIn(table('docs/stores/your-own.md', 'The contract'))
    const optional = ['sweep', 'scan', 'count', 'shard', 'close']
    expect([...verbs, ...optional]).toEqual(methods('src/contract/store.ts', 'Store'))
  })

  it('name every method of a visit', () => {
    const verbs = methodsIn(table('docs/methods.md', 'Of a visit')).filter(
      verb => verb !== 'headers' && verb !== 'cookies',
    )
    expect(verbs.sort()).toEqual(methods('src/visits/types.ts', 'Visit').sort())
  })

  it('name every method of the manager', () => {
    const verbs = methodsIn(table('docs/methods.md', 'Of a manager'))
    expect(verbs.sort()).toEqual(methods('src/manager/manager.ts', 'SessionManager').sort())
  })
})
