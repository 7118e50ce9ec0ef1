import { graphql } from './dialects.ts'
import { walk } from './walk.ts'

walk('the recipe for GraphQL Yoga', 'graphql-yoga', { dialect: graphql })
