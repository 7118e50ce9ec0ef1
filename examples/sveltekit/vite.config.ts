import { sveltekit } from '@sveltejs/kit/vite'
import { defineConfig } from 'vite'

export default defineConfig({
  plugins: [sveltekit()],
  ssr: { external: ['coatcheck'] }, // as where it comes from npm: Vite bundles packages that are links
})
