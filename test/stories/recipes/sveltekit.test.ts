import { walkPages } from './pages.ts'
import { walk } from './walk.ts'

// What a deployment of adapter-node says as well.
const env = (url: string) => ({ ORIGIN: url, BODY_SIZE_LIMIT: '16K' })

walk('the recipe for SvelteKit', 'sveltekit', { env })
walkPages('the recipe for SvelteKit', 'sveltekit', { env })
