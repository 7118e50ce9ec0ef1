import { expect, it } from 'vitest'
import { PASSWORD } from '../support/example-service.ts'
import { walkPages } from './pages.ts'
import { walk } from './walk.ts'

// What a deployment of adapter-node says as well.
const env = (url: string) => ({ ORIGIN: url, BODY_SIZE_LIMIT: '16K' })

walk('the recipe for SvelteKit', 'sveltekit', { env }, running =>
  walkPages(running, {}, reader => {
    it('say what failed after a link too, whose data SvelteKit reads from a success alone', async () => {
      const ada = reader()
      await ada.click('Log in', { username: 'ada', password: PASSWORD })
      running().control({ isDown: true })
      const { status, text } = await ada.send('GET', '/__data.json')
      running().control({})
      const error = { message: 'Internal Error', code: 'ERR_SESSION_STORE' }
      expect([status, JSON.parse(text).nodes.at(-1)]).toEqual([200, { type: 'error', error }])
    })
  }),
)
