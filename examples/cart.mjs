// @ts-check
// A shopping cart: typed data that begins without a login and is carried over when its owner logs in.
import { SessionManager } from 'coatcheck'
import { nodeVisits } from 'coatcheck/node'
import { MemoryStore } from 'coatcheck/stores/memory'
import { failure, listener, serve } from './serve.mjs'

// The start value is the type: `session.data.cart` is known to every method below, without a type argument.
const sessions = new SessionManager({
  store: new MemoryStore(),
  initial: () => ({ cart: /** @type {Record<string, number>} */ ({}), hint: '' }),
})
const visits = nodeVisits(sessions)

const articles = new Set(['coat', 'hat', 'umbrella'])

serve(
  listener(visits.of, {
    // The first article begins an anonymous session. Until then visitors cost nothing: no row, no cookie.
    async 'POST /cart'(visit, { article }) {
      if (!articles.has(article)) throw failure(400, 'There is no such article.')
      // On fresh data, and again if another tab was faster: no article is lost.
      const session = await visit.update(data => {
        data.cart[article] = (data.cart[article] ?? 0) + 1
        data.hint = `One more ${article}.`
      })
      return session?.data.cart ?? {}
    },

    async 'GET /cart'(visit) {
      const cart = (await visit.get())?.data.cart ?? {}
      return { cart, hint: (await visit.take('hint')) ?? '' } // shown once
    },

    // A login begins with fresh data, so that nothing planted before it survives. What may survive is named here.
    async 'POST /login'(visit, { username }) {
      if (username !== 'ada') throw failure(401, 'The name is wrong; this example asks for no password.')
      const session = await visit.logIn({
        user: { id: 42n, name: 'ada' },
        data: before => ({ cart: before.cart }),
      })
      return session.data.cart
    },

    async 'POST /logout'(visit) {
      await visit.logOut()
      return 'Logged out.'
    },
  }),
)
