import { walkPages } from './pages.ts'
import { walk } from './walk.ts'

// React Router itself answers 400 to a form of another origin.
walk('the recipe for React Router', 'react-router', {}, running => walkPages(running, { crossOrigin: 400 }))
