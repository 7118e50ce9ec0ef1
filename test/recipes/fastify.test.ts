import { walk } from './walk.ts'

walk('the recipe for Fastify', 'fastify')
