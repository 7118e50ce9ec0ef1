// @ts-check
// The site. `npm run docs` first gathers its pages in .tmp/site: docs/**/*.md, the API reference, and what they link to.
import { readFileSync } from 'node:fs'
import { defineConfig } from 'vitepress'
import { slug } from './slug.mjs'

const api = JSON.parse(readFileSync(new URL('../../.tmp/site/api/typedoc-sidebar.json', import.meta.url), 'utf8'))

/** @param {string} text @param {string} link */
const page = (text, link) => ({ text, link })

export default defineConfig({
  title: 'coatcheck',
  description: 'Server-side sessions for Node.js',
  lang: 'en',
  srcDir: '../.tmp/site',
  outDir: '../site',
  cacheDir: '../.tmp/vitepress',
  // The index of the search is one large file.
  vite: { build: { chunkSizeWarningLimit: 3000 } },
  markdown: { anchor: { slugify: slug }, toc: { slugify: slug } },
  themeConfig: {
    search: { provider: 'local' },
    outline: [2, 3],
    nav: [page('Guide', '/guide'), page('API', '/api/'), page('Changes', '/repository/CHANGELOG')],
    sidebar: [
      {
        text: 'Use',
        items: [
          page('Guide', '/guide'),
          page('Options', '/options'),
          page('Errors and events', '/errors-and-events'),
          page('Observability', '/observability'),
          page('Testing', '/testing'),
          page('Bound to a device', '/device-bound'),
          page('Deployment', '/deployment'),
          page('Operations', '/operations'),
          page('The command', '/command'),
        ],
      },
      {
        text: 'Servers',
        items: [
          page('All, and node:http', '/servers'),
          page('Express', '/servers/express'),
          page('Fastify', '/servers/fastify'),
          page('Koa', '/servers/koa'),
          page('Hono', '/servers/hono'),
          page('Nest', '/servers/nest'),
          page('tRPC', '/servers/trpc'),
          page('GraphQL Yoga', '/servers/graphql-yoga'),
          page('WebSockets: ws', '/servers/ws'),
          page('socket.io', '/servers/socket-io'),
          page('Next', '/servers/next'),
          page('SvelteKit', '/servers/sveltekit'),
          page('React Router', '/servers/react-router'),
          page('Cloudflare Workers', '/servers/cloudflare'),
          page('Bun and Deno', '/servers/bun-deno'),
        ],
      },
      {
        text: 'Move',
        items: [
          page('From another library', '/moving'),
          page('express-session', '/moving/express-session'),
          page('iron-session', '/moving/iron-session'),
          page('better-auth', '/moving/better-auth'),
          page('Lucia', '/moving/lucia'),
          page('NextAuth and Auth.js', '/moving/next-auth'),
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
        text: 'Judge',
        items: [page('Security', '/security'), page('Proof', '/proof'), page('Performance', '/performance')],
      },
      { text: 'API', items: api },
    ],
  },
})
