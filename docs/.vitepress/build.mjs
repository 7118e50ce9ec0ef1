// @ts-check
// `npm run docs`: builds the site in site/, with llms.txt and llms-full.txt. Fails for a link or an anchor that leads
// nowhere, for an export without a docstring, and if the search does not find a guide first. Needs no network.
import { spawnSync } from 'node:child_process'
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { dirname, extname, join, relative } from 'node:path/posix'
import { fileURLToPath } from 'node:url'
import { Application, Comment, ReflectionKind } from 'typedoc'
import { drawAll } from './diagrams.mjs'
import { llmsFull, llmsIndex } from './llms.mjs'
import { nameOf, SUBPATHS } from './pages.mjs'
import { builtIndex, unanswered } from './search.mjs'
import { slug } from './slug.mjs'

const KEYS = Object.keys(SUBPATHS)
/** What the reference shows as tables. */
const TABLES = ['parameters', 'interfaceProperties', 'typeDeclaration', 'enumMembers', 'propertyMembers']

const root = fileURLToPath(new URL('../../', import.meta.url))
const gathered = join(root, '.tmp/site')
const site = join(root, 'site')

/** @param {string} folder @param {string} ending @returns {string[]} paths relative to the folder */
const under = (folder, ending) =>
  readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter(
    path => path.endsWith(ending) && !path.startsWith('node_modules/'),
  )

/** Needs no page around it. @param {string} path */
const isPicture = path => /\.(?:png|svg)$/.test(path)

/** Where a file of the repository is on the site: a page of docs/ at its own path, all else below repository/.
 * @param {string} path */
const pageOf = path => {
  const page = path.startsWith('docs/') ? path.slice('docs/'.length) : `repository/${path.replace(/^\./, '')}`
  if (page.endsWith('.md')) return page
  // VitePress takes .html at the end of a link for a page of its own.
  return `${page.replace(/\.html$/, '-html')}.md`
}

/** The page for a file that is no page: its text, or the names in the folder.
 * @param {string} path @returns {string} */
function pageFor(path) {
  if (statSync(join(root, path)).isDirectory()) {
    // Without what an installed or built recipe has beside its files.
    const names = readdirSync(join(root, path)).filter(name => !/^(?:\..*|node_modules|dist|build)$/.test(name))
    return `# ${path}\n\n${names.map(name => `- [${name}](${join('/', path, name)})`).join('\n')}\n`
  }
  const text = readFileSync(join(root, path), 'utf8')
  return `# ${path}\n\n\`\`\`\`${extname(path).slice(1).replace('mjs', 'js')}\n${text}\n\`\`\`\`\n`
}

/** Blocks of code that follow one another with `<!-- tab: NAME -->` each: a group of VitePress. @param {string} text */
const withTabs = text =>
  text.replaceAll(/(?:<!-- tab: .+ -->\n(?:<!-- .+ -->\n)*```[\s\S]*?^```\n+)+/gm, group => {
    const blocks = group.replaceAll(/<!-- tab: (.+) -->\n(?:<!-- .+ -->\n)*```(\w+)\n(?:\/\/ .*\n)?/g, '```$2 [$1]\n')
    return `::: code-group\n\n${blocks}:::\n\n`
  })

/** @param {string} path in the repository @param {string} to among what is gathered */
function copy(path, to) {
  mkdirSync(join(gathered, dirname(to)), { recursive: true })
  copyFileSync(join(root, path), join(gathered, to))
}

/** Copies the pages of docs/, and whatever of the repository they link to, with links that hold on the site. */
function gatherPages() {
  const queue = under(join(root, 'docs'), '.md').map(path => `docs/${path}`)
  const seen = new Set(queue)
  for (const path of queue) {
    // As it is in the repository, too: that is where llms.txt leads to.
    if (statSync(join(root, path)).isFile()) copy(path, join('public', path))
    if (isPicture(path)) continue
    const text = path.endsWith('.md') ? withTabs(drawAll(readFileSync(join(root, path), 'utf8'))) : pageFor(path)
    const page = pageOf(path)
    // Code keeps its brackets: only text outside of fences has links.
    const linked = text.split(/^(\s*(`{3,})[\s\S]*?^\s*\2$)/m).map((part, index) => {
      if (index % 3 === 2) return ''
      if (index % 3 === 1) return part
      return part.replaceAll(/\]\((?!\w+:|#)([^)\s#]+)(#[^)\s]*)?\)/g, (_, target, anchor = '') => {
        const found = target.startsWith('/') ? target.slice(1) : join(dirname(path), target)
        if (!existsSync(join(root, found))) throw new Error(`${path} links to ${target}, which does not exist`)
        if (!seen.has(found)) {
          seen.add(found)
          queue.push(found)
        }
        if (isPicture(found)) return `](/${found})`
        const address = relative(dirname(page), pageOf(found))
        return `](${address.startsWith('.') ? address : `./${address}`}${anchor})`
      })
    })
    mkdirSync(join(gathered, dirname(page)), { recursive: true })
    writeFileSync(join(gathered, page), linked.join(''))
  }
}

/**
 * Exports and the methods of exported classes that have no docstring. TypeDoc's own check cannot tell them from the
 * methods in the shape of a client, which its driver documents.
 * @param {import('typedoc').ProjectReflection} project
 */
function undocumented(project) {
  /** @param {import('typedoc').DeclarationReflection} reflection */
  const isDocumented = reflection =>
    reflection.hasComment() ||
    [...(reflection.signatures ?? []), reflection.getSignature].some(signature => signature?.hasComment())
  return (project.children ?? []).flatMap(subpath =>
    (subpath.children ?? []).flatMap(exported => {
      if (exported.isReference()) return []
      const methods = exported.kindOf(ReflectionKind.Class)
        ? (exported.children ?? []).filter(
            ({ kind, name }) =>
              (kind === ReflectionKind.Method || kind === ReflectionKind.Accessor) && /^\w/.test(name),
          )
        : []
      return [exported, ...methods].filter(one => !isDocumented(one)).map(one => one.getFriendlyFullName())
    }),
  )
}

/**
 * TypeDoc numbers headings that read alike by rules of its own (`#sessionkey-1` for the only one of that name). The first
 * of that name is meant.
 */
function repairAnchors() {
  const folder = join(gathered, 'api')
  const files = under(folder, '.md')
  const anchors = new Map(
    files.map(file => {
      const headings = readFileSync(join(folder, file), 'utf8').matchAll(/^#+ (.+)$/gm)
      return [file, new Set([...headings].map(([, heading = '']) => slug(heading.replaceAll(/[\\~]/g, ''))))]
    }),
  )
  for (const file of files) {
    const text = readFileSync(join(folder, file), 'utf8')
    const repaired = text.replaceAll(/\]\(([^)#\s]*)#([\w-]+)-\d+\)/g, (link, target, anchor) =>
      anchors.get(target === '' ? file : join(dirname(file), target))?.has(anchor) ? `](${target}#${anchor})` : link,
    )
    writeFileSync(join(folder, file), repaired)
  }
}

/** Writes a page for each name of each subpath of package.json; exits if a name has no docstring or a link is dead. */
async function writeReference() {
  const sourceOf = (/** @type {string} */ key) => {
    if (key === '.') return 'src/index.ts'
    return key.startsWith('./stores/') ? `${key}.ts` : `src/${key.slice(2)}.ts`
  }
  const application = await Application.bootstrapWithPlugins({
    entryPoints: KEYS.map(key => join(root, sourceOf(key))),
    tsconfig: join(root, 'tsconfig.json'),
    plugin: ['typedoc-plugin-markdown', 'typedoc-vitepress-theme'],
    out: join(gathered, 'api'),
    readme: 'none',
    name: 'coatcheck',
    includeVersion: false,
    disableSources: true,
    disableGit: true,
    excludePrivate: true,
    excludeProtected: true,
    excludeInternal: true,
    excludeExternals: true,
    validation: {
      notExported: true,
      invalidLink: true,
      rewrittenLink: true,
      notDocumented: false,
      unusedMergeModuleWith: true,
    },
    treatWarningsAsErrors: true,
    ...{ docsRoot: gathered, hideBreadcrumbs: true, indexFormat: 'table', sidebar: { autoConfiguration: false } },
    ...Object.fromEntries(TABLES.map(name => [`${name}Format`, 'table'])),
  })
  const project = await application.convert()
  if (!project || application.logger.hasErrors()) process.exit(1)
  application.validate(project)
  for (const name of undocumented(project)) application.logger.error(`${name} is exported and has no docstring`)
  if (application.logger.hasWarnings() || application.logger.hasErrors()) process.exit(1)
  // A folder for each subpath, under the name that is imported.
  for (const module of project.children ?? []) {
    const found = KEYS.find(each => sourceOf(each).replace(/(?:\/index)?\.ts$/, '') === module.name)
    const key = found ?? (module.name === 'src' ? '.' : `./${module.name.replace(/^src\//, '')}`)
    module.name = nameOf(key)
    module.comment = new Comment([{ kind: 'text', text: SUBPATHS[key] ?? '' }])
  }
  await application.generateOutputs(project)
  if (application.logger.hasWarnings() || application.logger.hasErrors()) process.exit(1)
  repairAnchors()
}

/** Every link and anchor of the built pages that leads nowhere. @returns {string[]} */
function deadLinks() {
  const pages = new Map(
    under(site, '.html').map(path => {
      const html = readFileSync(join(site, path), 'utf8')
      return [path, { html, ids: new Set([...html.matchAll(/\sid="([^"]+)"/g)].map(match => match[1])) }]
    }),
  )
  const dead = []
  for (const [path, { html }] of pages)
    for (const [, href = ''] of html.matchAll(/<a\s[^>]*?href="([^"]+)"/g)) {
      if (/^\w+:/.test(href)) continue
      const [target = '', anchor] = decodeURIComponent(href.replaceAll('&amp;', '&')).split('#')
      const found = target === '' ? path : join(target.startsWith('/') ? '' : dirname(path), target).replace(/^\/+/, '')
      const page = [found, `${found}.html`, join(found, 'index.html')].find(name => pages.has(name))
      if (page === undefined) {
        if (!existsSync(join(site, found))) dead.push(`${path}: ${href}`)
      } else if (anchor && !pages.get(page)?.ids.has(anchor)) dead.push(`${path}: ${href}`)
    }
  return dead
}

rmSync(gathered, { recursive: true, force: true })
rmSync(site, { recursive: true, force: true })
mkdirSync(gathered, { recursive: true })
gatherPages()
copy('examples/server/page.svg', 'public/hanger.svg')
writeFileSync(
  join(gathered, 'public/llms.txt'),
  llmsIndex('All pages as one text: [llms-full.txt](llms-full.txt).\n\n'),
)
writeFileSync(join(gathered, 'public/llms-full.txt'), llmsFull())
await writeReference()
const built = spawnSync(
  process.execPath,
  [join(root, 'docs/node_modules/vitepress/bin/vitepress.js'), 'build', 'docs'],
  {
    cwd: root,
    stdio: 'inherit',
  },
)
if (built.status !== 0) process.exit(1)
const dead = deadLinks()
for (const link of dead) console.error(`dead link or anchor in ${link}`)
const missed = unanswered(builtIndex(site))
for (const question of missed) console.error(`the search does not find a guide first: ${question}`)
if (dead.length > 0 || missed.length > 0) process.exit(1)
console.log('The site is in site/; `npx --prefix docs vitepress preview docs` shows it.')
