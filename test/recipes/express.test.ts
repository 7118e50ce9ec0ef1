import { walk } from './walk.ts'

walk('the recipe for Express', 'express')
