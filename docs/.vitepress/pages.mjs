// @ts-check
// The order of the pages and what each is about: for the sidebar, llms.txt and search engines.
import { readFileSync } from 'node:fs'

const { exports } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8'))
/** What each subpath of package.json is for. @type {Record<string, string>} */
export const SUBPATHS = {
  '.': 'The manager, its options, its errors and events, and the types of a session and a visit.',
  './node': 'Visits on node:http, and on what is built over it: Express, Koa, Fastify, Nest.',
  './fetch': 'Visits with Request and Response: Hono, SvelteKit, Astro, Bun, Deno, Workers.',
  './next': 'Visits in the app router of Next.',
  './connect': 'A store for express-session, @fastify/session and koa-session.',
  './better-auth': 'A secondary storage for better-auth.',
  './import': 'Readers of the cookies and records of other libraries, for a move.',
  './device-bound': 'Sessions bound to a key that stays in the device.',
  './custom-server': 'What a server needs that has neither node:http nor Request: to make visits of its own.',
  './custom-store': 'The contract of a store, for one of your own.',
  './custom-store/testing': 'The test suite that a store of your own passes, and a reference to compare it with.',
  './stores/memory': 'Sessions in the process.',
  './stores/redis': 'Sessions in Redis or Valkey.',
  './stores/postgres': 'Sessions in PostgreSQL.',
  './stores/mysql': 'Sessions in MySQL or MariaDB.',
  './stores/sqlite': 'Sessions in a file of SQLite.',
  './stores/d1': 'Sessions in Cloudflare D1.',
  './testing': 'A clock of your own, for the tests of an application.',
}
for (const key of Object.keys(exports))
  if (key !== './package.json' && !SUBPATHS[key]) throw new Error(`${key} has no sentence in pages.mjs`)
/** What is imported: coatcheck, coatcheck/node. @param {string} key of the exports */
export const nameOf = key => `coatcheck${key.slice(1)}`

/** @param {string} text @param {string} link @param {string} description what a search engine and llms.txt say of it */
const page = (text, link, description) => ({ text, link, description })

export const SECTIONS = [
  {
    text: 'Start',
    items: [
      page(
        'What it is',
        '/',
        'Server-side sessions for Node.js where logged out means logged out: no framework needed, TypeScript, one dependency.',
      ),
      page(
        'Ten minutes',
        '/start',
        'In ten minutes: sign-up, login, a guard and logout with Express, TypeScript and PostgreSQL, as one program to paste.',
      ),
      page(
        'Which store?',
        '/stores',
        'Which database keeps the sessions: what each store survives, what it costs, and what holds for all of them.',
      ),
      page(
        'Compare',
        '/compare',
        'What express-session, iron-session, better-auth, JWT and others do when requests overlap, measured by a command.',
      ),
    ],
  },
  {
    text: 'Guides',
    items: [
      page(
        'All tasks',
        '/guide',
        'One page for each task: login, guards, remember me, devices, passwords, CSRF; and the words that the pages use.',
      ),
      page(
        'A login page',
        '/guide/login-page',
        'A login form, a redirect back to where the user wanted to go, and a rate limit against brute force.',
      ),
      page(
        'Guard pages and actions',
        '/guide/guard',
        'Middleware that lets only users in: requireUser, roles, 401, and the password again before a dangerous action.',
      ),
      page(
        'Data: cart, flash messages',
        '/guide/data',
        'Keep a cart, flash messages or any small data in a session, without losing a parallel change.',
      ),
      page(
        'Remember me',
        '/guide/remember-me',
        'Stay logged in for weeks: a token that is used once, and what happens if somebody copies it.',
      ),
      page(
        'Change a password',
        '/guide/change-password',
        'Change a password so that every other session and every login with the old password ends.',
      ),
      page(
        'Devices',
        '/guide/devices',
        'A page that shows where a user is logged in, and logs out one device or all of them.',
      ),
      page(
        'A second factor',
        '/guide/second-factor',
        'TOTP, a passkey or a code by mail: nobody is logged in before the second factor was checked.',
      ),
      page(
        'Sudo mode',
        '/guide/step-up',
        'Step-up authentication: ask for the password or a code again before what matters, and remember which proof was given.',
      ),
      page(
        'Log in as a user',
        '/guide/act-as',
        'Support acts as a user, for a while and on record: impersonation that the logout of support ends.',
      ),
      page(
        'A mail about a new device',
        '/guide/new-device',
        'Tell users by mail that somebody logged in on a device that they have never used.',
      ),
      page(
        'OAuth, OIDC and SAML',
        '/guide/oauth',
        'Log in with OAuth, OIDC or SAML: what has to come back in the session, and who the user is then.',
      ),
      page(
        'Back-channel logout',
        '/guide/back-channel-logout',
        'OpenID Connect Back-Channel Logout: a logout at the provider ends the sessions here.',
      ),
      page(
        'Refresh tokens',
        '/guide/refresh-tokens',
        'Refresh an OAuth access token once, however many requests and nodes ask for it.',
      ),
      page(
        'Forms and CSRF',
        '/guide/csrf',
        'Unsafe requests of other origins are refused; tokens for forms where that is not enough.',
      ),
      page(
        'Sockets, jobs, native apps',
        '/guide/sockets',
        'Sessions where no page is: WebSockets, background jobs, native apps and bearer tokens.',
      ),
      page(
        'Tenants, several cookies',
        '/guide/tenants',
        'Several tenants in one store, and several session cookies in one browser.',
      ),
      page(
        'A new ID now and then',
        '/guide/new-id',
        'Give a session a new ID now and then, and why a request under way is not logged out by it.',
      ),
      page(
        'Bound to a device',
        '/device-bound',
        'Bind a session to a key that stays in the device, so that a copied cookie is soon worth nothing.',
      ),
      page(
        'Testing',
        '/testing',
        'Test your application without sleeping and without mocks: a fake clock, a cookie jar, a logged-in client.',
      ),
    ],
  },
  {
    text: 'Frameworks',
    items: [
      page(
        'All, and node:http',
        '/servers',
        'How each server makes a visit, with node:http, error handling and what every framework has to do.',
      ),
      page(
        'Express',
        '/servers/express',
        'Sessions in Express 4 and 5, in TypeScript: middleware, and the handler for errors.',
      ),
      page('Fastify', '/servers/fastify', 'Sessions in Fastify: a hook, a decorator, and errors with their status.'),
      page('Koa', '/servers/koa', 'Sessions in Koa: one middleware that puts the visit into the context.'),
      page('Hono', '/servers/hono', 'Sessions in Hono, on Node.js, Bun, Deno and Workers.'),
      page('hapi', '/servers/hapi', 'Sessions in hapi: a plugin that gives every handler its visit.'),
      page('Nest', '/servers/nest', 'Sessions in Nest: a module, guards, a decorator and an exception filter.'),
      page('tRPC', '/servers/trpc', 'Sessions in tRPC: the visit in the context, and a procedure for users only.'),
      page(
        'GraphQL Yoga',
        '/servers/graphql-yoga',
        'Sessions in GraphQL Yoga: the visit in the context, and errors that reach the client.',
      ),
      page(
        'Apollo Server',
        '/servers/apollo',
        'Sessions in Apollo Server: the visit in the context, and errors with their code.',
      ),
      page(
        'WebSockets: ws',
        '/servers/ws',
        'WebSockets with ws: check the session at the upgrade, and close sockets when it ends.',
      ),
      page(
        'socket.io',
        '/servers/socket-io',
        'socket.io: refuse strangers at the handshake, and disconnect a session that has ended.',
      ),
      page(
        'Next',
        '/servers/next',
        'Sessions in Next: server components, server actions, route handlers and the proxy.',
      ),
      page(
        'SvelteKit',
        '/servers/sveltekit',
        'Sessions in SvelteKit: one hook for pages, form actions, endpoints and client-side navigation.',
      ),
      page(
        'Nuxt',
        '/servers/nuxt',
        'Sessions in Nuxt and h3: a server middleware that gives every handler and page its visit.',
      ),
      page('Astro', '/servers/astro', 'Sessions in Astro: one middleware for pages, endpoints and actions.'),
      page(
        'React Router',
        '/servers/react-router',
        'Sessions in React Router 7 (Remix): one middleware for loaders, actions and resource routes.',
      ),
      page(
        'TanStack Start',
        '/servers/tanstack-start',
        'Sessions in TanStack Start: the server entry opens the visit for pages and server functions.',
      ),
      page(
        'Cloudflare Workers',
        '/servers/cloudflare',
        'Sessions in Cloudflare Workers: the flag to set, the store to take, and what a Worker does otherwise.',
      ),
      page('Bun and Deno', '/servers/bun-deno', 'Sessions in Bun and Deno, with Request and Response.'),
      page('Elysia', '/servers/elysia', 'Sessions in Elysia on Bun: a typed visit for every handler.'),
      page(
        'AWS Lambda',
        '/servers/aws-lambda',
        'Sessions in AWS Lambda, behind an HTTP API of API Gateway or a function URL.',
      ),
    ],
  },
  {
    text: 'Stores',
    items: [
      page(
        'Memory',
        '/stores/memory',
        'MemoryStore keeps sessions in the process: for development, tests, and a service of one process.',
      ),
      page(
        'Redis',
        '/stores/redis',
        'RedisStore shares sessions between servers: Redis, Valkey, Sentinel, cluster; with redis or ioredis.',
      ),
      page(
        'PostgreSQL',
        '/stores/postgresql',
        'PostgresStore keeps sessions in PostgreSQL, through pg, Postgres.js, Neon or PGlite.',
      ),
      page(
        'MySQL and MariaDB',
        '/stores/mysql',
        'MysqlStore keeps sessions in MySQL or MariaDB, through a pool of mysql2.',
      ),
      page(
        'SQLite',
        '/stores/sqlite',
        'SqliteStore keeps sessions in a file that the processes of one machine share; four drivers.',
      ),
      page('Cloudflare D1', '/stores/d1', 'D1Store keeps sessions in Cloudflare D1, through the binding of a Worker.'),
      page(
        'Your own',
        '/stores/your-own',
        'Write a store for another database: eight methods, and a test suite that says what is wrong.',
      ),
    ],
  },
  {
    text: 'Moving',
    items: [
      page(
        'From another library',
        '/moving',
        'Move from another session library without logging anyone out: the steps, the code, and what happens.',
      ),
      page(
        'express-session',
        '/moving/express-session',
        'Move from express-session, or from Passport over it, to visits, with live sessions and cookies.',
      ),
      page(
        'A store for express-session',
        '/connect',
        'A store for express-session, @fastify/session and koa-session, so that Passport and req.session stay as they are.',
      ),
      page(
        'iron-session',
        '/moving/iron-session',
        'Move from iron-session: sealed cookies become sessions that can be listed and ended.',
      ),
      page(
        'better-auth',
        '/moving/better-auth',
        'Move the sessions of better-auth, for services that keep their users themselves.',
      ),
      page(
        'Under better-auth',
        '/better-auth',
        'Use coatcheck as the secondaryStorage of better-auth, so that ended sessions stay ended.',
      ),
      page(
        'Lucia',
        '/moving/lucia',
        'Move from Lucia, 3 or the code of its site, with the same table and live sessions.',
      ),
      page(
        'NextAuth and Auth.js',
        '/moving/next-auth',
        'Move from NextAuth 4 or Auth.js 5, from database sessions or from JWT.',
      ),
    ],
  },
  {
    text: 'Production',
    items: [
      page(
        'Deployment',
        '/deployment',
        'What to set in production: HTTPS, proxies (nginx, Kubernetes, Cloudflare, Firebase), Unix sockets, several servers.',
      ),
      page(
        'Change a living service',
        '/change-a-service',
        'Another cookie, secret, timeout, schema or version while the service runs: what happens to those logged in.',
      ),
      page(
        'Runbook',
        '/runbook',
        'What to look at when something is wrong, by symptom: users are logged out, 401, 403, 503, no cookie.',
      ),
      page('Operations', '/operations', 'Count, list and end sessions of a whole service, in a program or a job.'),
      page(
        'The command',
        '/command',
        'npx coatcheck in a shell: count, list and end sessions, create tables, find what is wrong.',
      ),
      page(
        'Observability',
        '/observability',
        'Metrics, traces, logs and alarms, with programs for Prometheus and OpenTelemetry.',
      ),
    ],
  },
  {
    text: 'Trust',
    items: [
      page(
        'Security',
        '/security',
        'Who defends what, what is not defended, the choices behind it, and OWASP ASVS clause by clause.',
      ),
      page(
        'Proof',
        '/proof',
        'How the nine guarantees are searched for counterexamples, and how to repeat each search.',
      ),
      page(
        'Performance',
        '/performance',
        'What a request of a logged-in user costs, beside code by hand, other libraries and a JWT.',
      ),
      page('Changes', '/repository/CHANGELOG', 'What each release changed.'),
    ],
  },
  {
    text: 'Reference',
    items: [
      page(
        'Options',
        '/options',
        'Every option with its default and reason: timeouts (maxAge), cookie, store, limits, callbacks.',
      ),
      page(
        'Errors and events',
        '/errors-and-events',
        'Every error with its code and status (401, 403, 409, 503), and every event that the library reports.',
      ),
      page('Methods', '/methods', 'Every method of a visit and of the manager, in one line each.'),
    ],
  },
]

/** What a page is about, by its link. */
export const DESCRIPTIONS = new Map(SECTIONS.flatMap(({ items }) => items.map(item => [item.link, item.description])))
/** @param {string} path of the Markdown: `guide/csrf.md` */
export const describe = path => DESCRIPTIONS.get(`/${path.replace(/(?:^index)?\.md$/, '')}`)
