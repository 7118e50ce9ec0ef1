export default defineNuxtConfig({
  compatibilityDate: '2025-11-01',
  telemetry: false,
  nitro: { esbuild: { options: { target: 'es2022' } } }, // server/utils/users.ts awaits
  postcss: { plugins: { cssnano: false } }, // there is no CSS here, and its latest release needs Node.js 22
})
