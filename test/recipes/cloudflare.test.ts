import process from 'node:process'
import { walk } from './walk.ts'

// In workerd, which runs Cloudflare's Workers: nothing can be preloaded into it.
walk('the recipe for Cloudflare Workers', 'cloudflare', {
  command: (_, port) => [
    process.execPath,
    'node_modules/.bin/wrangler',
    'dev',
    '--ip',
    '127.0.0.1',
    '--port',
    `${port}`,
  ],
  env: () => ({ CI: '1', WRANGLER_SEND_METRICS: 'false' }),
  isTyped: true,
  isRuled: false,
  isBehindGateway: true,
})
