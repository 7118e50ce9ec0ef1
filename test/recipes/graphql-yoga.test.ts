import { walkGraphql } from './graphql.ts'

walkGraphql('GraphQL Yoga', 'graphql-yoga', 101)
