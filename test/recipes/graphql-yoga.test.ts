import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { Client, PASSWORD } from '../support/example-service.ts'
import { graphql } from './dialects.ts'
import { type RunningRecipe, startRecipe } from './recipe.ts'
import { walk } from './walk.ts'

walk('the recipe for GraphQL Yoga', 'graphql-yoga', { dialect: graphql })

describe('GraphQL Yoga', () => {
  let running: RunningRecipe
  beforeAll(async () => {
    running = await startRecipe('graphql-yoga')
  }, 120_000)
  afterAll(() => running?.stop())

  it('logs in once in a request, however many aliases and operations it has', async () => {
    const login = (name: string) => `login(username: "${name}", password: "${PASSWORD}") { id }`
    const aliases = ['ada', ...Array.from({ length: 100 }, () => 'max')].map(
      (name, index) => `a${index}: ${login(name)}`,
    )
    const ada = new Client(running.url)
    const many = await ada.send('POST', '/graphql', { query: `mutation { ${aliases.join(' ')} }` })
    expect([many.status, many.body.errors[0].message]).toEqual([400, 'one_login_per_request'])
    const profile = await ada.send('POST', '/graphql', { query: 'query { profile { name } }' })
    expect(profile.body.data.profile.name).toBe('ada')

    const operations = ['ada', 'max'].map(name => ({ query: `mutation { ${login(name)} }` }))
    const batch = await new Client(running.url).send('POST', '/graphql', operations)
    expect([batch.status, batch.headers.getSetCookie()]).toEqual([400, []])
  })
})
