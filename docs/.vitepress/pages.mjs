// @ts-check
// The order of the pages: for the sidebar and for llms.txt.
import { readFileSync } from 'node:fs'

const { exports } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8'))
export const SUBPATHS = Object.keys(exports).filter(key => key !== './package.json')
/** What is imported: coatcheck, coatcheck/node. @param {string} key of the exports */
export const nameOf = key => `coatcheck${key.slice(1)}`

/** @param {string} text @param {string} link */
const page = (text, link) => ({ text, link })

export const SECTIONS = [
  {
    text: 'Start',
    items: [
      page('What it is', '/'),
      page('Ten minutes', '/start'),
      page('Which store?', '/stores'),
      page('Compare', '/compare'),
    ],
  },
  {
    text: 'Guides',
    items: [
      page('All tasks', '/guide'),
      page('A login page', '/guide/login-page'),
      page('Guard pages and actions', '/guide/guard'),
      page('Data: cart, flash messages', '/guide/data'),
      page('Remember me', '/guide/remember-me'),
      page('Change a password', '/guide/change-password'),
      page('Devices', '/guide/devices'),
      page('A second factor', '/guide/second-factor'),
      page('OAuth, OIDC and SAML', '/guide/oauth'),
      page('Forms and CSRF', '/guide/csrf'),
      page('Sockets, jobs, native apps', '/guide/sockets'),
      page('Tenants, several cookies', '/guide/tenants'),
      page('A new ID now and then', '/guide/new-id'),
      page('Bound to a device', '/device-bound'),
      page('Testing', '/testing'),
    ],
  },
  {
    text: 'Frameworks',
    items: [
      page('All, and node:http', '/servers'),
      page('Express', '/servers/express'),
      page('Fastify', '/servers/fastify'),
      page('Koa', '/servers/koa'),
      page('Hono', '/servers/hono'),
      page('hapi', '/servers/hapi'),
      page('Nest', '/servers/nest'),
      page('tRPC', '/servers/trpc'),
      page('GraphQL Yoga', '/servers/graphql-yoga'),
      page('Apollo Server', '/servers/apollo'),
      page('WebSockets: ws', '/servers/ws'),
      page('socket.io', '/servers/socket-io'),
      page('Next', '/servers/next'),
      page('SvelteKit', '/servers/sveltekit'),
      page('Nuxt', '/servers/nuxt'),
      page('Astro', '/servers/astro'),
      page('React Router', '/servers/react-router'),
      page('TanStack Start', '/servers/tanstack-start'),
      page('Cloudflare Workers', '/servers/cloudflare'),
      page('Bun and Deno', '/servers/bun-deno'),
      page('Elysia', '/servers/elysia'),
      page('AWS Lambda', '/servers/aws-lambda'),
    ],
  },
  {
    text: 'Stores',
    items: [
      page('Memory', '/stores/memory'),
      page('Redis', '/stores/redis'),
      page('PostgreSQL', '/stores/postgresql'),
      page('MySQL and MariaDB', '/stores/mysql'),
      page('SQLite', '/stores/sqlite'),
      page('Cloudflare D1', '/stores/d1'),
      page('Your own', '/stores/your-own'),
    ],
  },
  {
    text: 'Moving',
    items: [
      page('From another library', '/moving'),
      page('express-session', '/moving/express-session'),
      page('A store for express-session', '/connect'),
      page('iron-session', '/moving/iron-session'),
      page('better-auth', '/moving/better-auth'),
      page('Under better-auth', '/better-auth'),
      page('Lucia', '/moving/lucia'),
      page('NextAuth and Auth.js', '/moving/next-auth'),
    ],
  },
  {
    text: 'Production',
    items: [
      page('Deployment', '/deployment'),
      page('Change a living service', '/change-a-service'),
      page('Runbook', '/runbook'),
      page('Operations', '/operations'),
      page('The command', '/command'),
      page('Observability', '/observability'),
    ],
  },
  {
    text: 'Trust',
    items: [
      page('Security', '/security'),
      page('Proof', '/proof'),
      page('Performance', '/performance'),
      page('Changes', '/repository/CHANGELOG'),
    ],
  },
  {
    text: 'Reference',
    items: [page('Options', '/options'), page('Errors and events', '/errors-and-events'), page('Methods', '/methods')],
  },
]
