import { reactRouter } from '@react-router/dev/vite'
import { defineConfig } from 'vite'

export default defineConfig({
  plugins: [reactRouter()],
  ssr: { external: ['coatcheck'] }, // as where it comes from npm: Vite bundles packages that are links
})
