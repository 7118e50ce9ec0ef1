import { walkPages } from './pages.ts'
import { walk } from './walk.ts'

walk('the recipe for React Router', 'react-router')

// React Router itself answers 400 to a form of another origin.
walkPages('the recipe for React Router', 'react-router', { statusOf: { crossOrigin: 400, storeDown: 503 } })
