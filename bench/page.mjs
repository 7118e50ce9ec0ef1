// @ts-check
// Writes docs/performance.md out of what runs printed: each printed word, none of its own figures.
//   npm run --silent bench >tables.txt; npm run --silent bench -- alone >alone.txt; … details …; … growth …; … nodes …
//   node bench/page.mjs tables.txt alone.txt details.txt growth.txt nodes.txt
import { readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

const page = fileURLToPath(new URL('../docs/performance.md', import.meta.url))
const AIMS = 'What was aimed at'

/** @typedef {{ title: string, body: string }} Section */

/** The command, the machine and the versions, then the sections. @param {string} file */
function read(file) {
  const text = readFileSync(file, 'utf8')
  const [command = '', machine = '', versions = ''] = text
    .split('\n')
    .slice(text.split('\n').findIndex(line => line.startsWith('`npm run bench')))
  const sections = text
    .split(/^### /m)
    .slice(1)
    .map(part => {
      const end = part.indexOf('\n')
      return {
        title: part.slice(0, end).trim(),
        body: part
          .slice(end)
          .replace(/\nTook \d+ s\.\s*$/, '')
          .trim(),
      }
    })
  return { command, machine, versions, sections }
}
/** @param {Section} section */
const show = ({ title, body }) => `### ${title}\n\n${body}`

/** The cells of a table of requests, by request and row. @param {string} body */
function cellsOf(body) {
  /** @type {Map<string, Map<string, string[]>>} */
  const requests = new Map()
  let request = ''
  for (const line of body.split('\n').filter(each => each.startsWith('| '))) {
    const [what = '', who = '', ...cells] = line
      .slice(1, -1)
      .split('|')
      .map(cell => cell.trim())
    request = what || request
    requests.set(request, (requests.get(request) ?? new Map()).set(who, cells))
  }
  return requests
}

/** @param {readonly Section[]} stores */
function inShort(stores) {
  const rows = stores.map(({ title, body }) => {
    const requests = cellsOf(body)
    /** The first row whose name begins so. @param {string} request @param {string} name @param {number} [column] */
    const cell = (request, name, column = 0) => {
      const [, cells] = [...(requests.get(request) ?? [])].find(([who]) => who.startsWith(name)) ?? []
      return cells?.[column] ?? ''
    }
    const user = 'GET of a user'
    return [
      title,
      `${cell(user, 'coatcheck')} (${cell(user, 'coatcheck', 1)})`,
      cell('the same, 1 connection', 'coatcheck'),
      cell('anonymous GET', 'coatcheck'),
      ...[
        'express-session',
        '@fastify/session',
        'koa-session',
        'better-auth',
        'JWT, jose',
        'JWT, jsonwebtoken',
        'JWT, fast-jwt',
      ].map(name => cell(user, name)),
    ]
  })
  const head = [
    'store',
    'coatcheck',
    '1 connection',
    'anonymous',
    'express-session',
    '@fastify/session',
    'koa-session',
    'better-auth',
    'JWT, jose',
    'JWT, jsonwebtoken',
    'JWT, fast-jwt',
  ]
  const line = (/** @type {readonly string[]} */ cells) => `| ${cells.join(' | ')} |`
  return [line(head), line(head.map((_, at) => (at === 0 ? '---' : '---:'))), ...rows.map(line)].join('\n')
}

const files = process.argv.slice(2)
if (files.length === 0) {
  console.error(
    'Usage: node bench/page.mjs TABLES [ALONE] [DETAILS] [GROWTH] [NODES]: files with what the runs printed',
  )
  process.exit(2)
}
const [tables, ...others] = files.map(read)
if (!tables) throw new Error('nothing was read')
const stores = tables.sections.filter(({ title }) => title !== AIMS)
const aims = tables.sections.find(({ title }) => title === AIMS)

const text = `# Performance

What a request costs next to the same request written by hand, to other session libraries and to a signed token; what sessions take; what many sessions and many processes change. \`npm run bench\` printed all figures of this page, missed aims included.

## In short

Processor time of the server for a GET of a logged-in user at 64 connections, as a ratio to a handler of raw \`node:http\` that does the least by hand with the same client: a look into a \`Map\`, a \`GET\`, a prepared \`SELECT\`. In brackets: the middle half of the rounds. \`1 connection\` and \`anonymous\` are coatcheck's.

${inShort(stores)}

- Requests that arrive in the same turn of the event loop share one command to Redis, PostgreSQL and MySQL; the handler by hand sends one for each.
- A ratio belongs to its row: by hand is a Map in the first, a query over a socket in most others. The tables below have requests per second of processor time.
- express-session includes Express; the table of memory tells its share apart.
- A JWT is verified and not looked up: a logout ends nothing at the server, and there is no logout-everywhere.

## How it was measured

- ${tables.command} ${tables.machine}
- ${tables.versions}
- All servers of a table have their turn in each round, and a ratio is of one round. Where the machine was busy with other things, the middle half is wide: a difference inside it means nothing.
- Before its rounds each server answers up to 20,480 requests at 64 connections, 16,384 at 1 connection and 8,192 without a session, until V8 has compiled most of what they need. What it compiles later is in the figures, and so is what it does for a process that idles while the others have their turn: it collects garbage, drops compiled code and compiles it again. More code costs more of both.
- At 1 connection only one of client, server and database runs at a time, and all of them share one processor. Where the system is left to choose, it puts them on one or on several, one library's this way and the next one's that way, and waking another processor takes a server as long as the whole request by hand: of two runs of the same code one looked twice as dear.

## Store commands

| request | commands |
| --- | --- |
| without a cookie, or with a malformed one | none |
| with a session | at most one read; requests of the same turn of the event loop share one |
| with a session, once per \`touchInterval\` | a read and one write |
| \`update\`, a login, a logout, a new ID | one each, beside the read |

In the tables below, commands are what the database received per request, the beginning and the end of a transaction included.

## The tables

By hand knows no touch, no hash and no race. Requests arrive 64 at once, the next 64 when all are answered; \`in a stream\` is the ratio where each connection sends its next request as soon as it has an answer, and p50 and p99 are of that. The processor time of the database is that of all its processes, per request. A login checks no password. Bytes per session are those of 2,000 sessions, first tables included: rough in memory.

${stores.map(show).join('\n\n')}
${aims ? `\n## ${AIMS}\n\nFor coatcheck, a GET of a user unless it says more; "coatcheck = 1" compares another with it.\n\n${aims.body}\n` : ''}
${others.map(({ command, machine, sections }) => `## ${titleOf(command)}\n\n${command} ${machine}\n\n${sections.map(show).join('\n\n')}\n`).join('\n')}
## What you can change

- **\`touchInterval\`**: a longer one writes less often, and \`seenAt\` is less exact.
- **\`passwordVersion\` as an option** asks your database at each \`get\`. Without it a password change is as safe, because \`invalidateUser\` ends the sessions themselves; the option is for versions that change elsewhere.
- **The data of a session** is read at every request. Keep it small: a reference to a row is better than the row.
- **\`visit.get({ touch: false })\`** for polls: they keep no session alive and write nothing.

## Measure it yourself

In a clone of the repository:

\`\`\`sh
npm run bench                # the table of each store; installs what it compares with
npm run bench -- --quick     # two minutes on a quiet machine: fewer requests, rows and rounds
npm run bench -- redis       # the tables of one kind of store: memory, redis, sql
npm run bench -- alone       # coatcheck beside by hand, more rounds; what a request is made of
npm run bench -- details     # methods of the manager, bytes per session
npm run bench -- growth      # up to five million sessions; takes 8 GB
npm run bench -- nodes       # 1, 2 and 4 processes on one database
npm run bench -- sweep       # a million expired rows beside live traffic
\`\`\`

Servers are found on PATH and started for the run; a missing one is named, and so is every library without a row.
`
writeFileSync(page, text)

/** @param {string} command */
function titleOf(command) {
  const titles = {
    alone: 'coatcheck and by hand alone',
    details: 'Methods and sizes',
    growth: 'Growth',
    nodes: 'Many processes',
    sweep: 'Removing a million expired rows',
  }
  return Object.entries(titles).find(([name]) => command.includes(` ${name}`))?.[1] ?? 'More'
}
