// The walk through a recipe for GraphQL, and what a request with several operations may do.
import { expect, it } from 'vitest'
import { Client, PASSWORD } from '../support/example-service.ts'
import { graphql } from './dialects.ts'
import { walk } from './walk.ts'

export function walkGraphql(title: string, recipe: string, aliases: number): void {
  walk(`the recipe for ${title}`, recipe, { dialect: graphql }, running => {
    it('logs in once in a request, however many aliases it has, and takes no batch', async () => {
      const login = (name: string) => `login(username: "${name}", password: "${PASSWORD}") { id }`
      const all = Array.from({ length: aliases }, (_, index) => `a${index}: ${login(index === 0 ? 'ada' : 'max')}`)
      const ada = new Client(running().url)
      const many = await ada.send('POST', '/graphql', { query: `mutation { ${all.join(' ')} }` })
      expect([many.status, many.body.errors[0].message]).toEqual([400, 'one_login_per_request'])
      const profile = await ada.send('POST', '/graphql', { query: 'query { profile { name } }' })
      expect(profile.body.data.profile.name).toBe('ada')

      const operations = ['ada', 'max'].map(name => ({ query: `mutation { ${login(name)} }` }))
      const batch = await new Client(running().url).send('POST', '/graphql', operations)
      expect([batch.status, batch.headers.getSetCookie()]).toEqual([400, []])
    })
  })
}
