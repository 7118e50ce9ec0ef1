// The walk speaks of what a client wants; how a recipe is asked for it, and where its answers are, is here.

/** What every recipe offers. */
export type Wish =
  | { name: 'profile' }
  | { name: 'cart' }
  | { name: 'add'; input: { article: unknown } }
  | { name: 'login'; input: { username: unknown; password: unknown; remember?: unknown } }
  | { name: 'logout' }
  | { name: 'save'; input: { csrf: string } }

export interface Dialect {
  request(wish: Wish): { method: string; path: string; body?: unknown; headers?: Record<string, string> }
  /** What a successful answer says. */
  value(body: any): any
  /** Whether GET of where it saves is a form, whose token the POST asks for. */
  readonly hasForm: boolean
}

const PATHS = { profile: '/profile', cart: '/cart', add: '/cart', login: '/login', logout: '/logout', save: '/account' }
const isRead = ({ name }: Wish) => name === 'profile' || name === 'cart'

/** GET and POST, JSON and one form. */
export const rest: Dialect = {
  request(wish) {
    const method = isRead(wish) ? 'GET' : 'POST'
    const path = PATHS[wish.name]
    if (wish.name === 'save')
      return {
        method,
        path,
        body: `${new URLSearchParams(wish.input)}`,
        headers: { 'Content-Type': 'application/x-www-form-urlencoded' },
      }
    return { method, path, ...('input' in wish && { body: wish.input }) }
  },
  value: body => body,
  hasForm: true,
}

/** The same below a path, where pages have the others. */
export const below = (folder: string): Dialect => ({
  ...rest,
  request(wish) {
    const asked = rest.request(wish)
    return { ...asked, path: folder + asked.path }
  },
})

/** Queries and mutations of tRPC, one in each request. */
export const trpc: Dialect = {
  request: wish => ({
    method: isRead(wish) ? 'GET' : 'POST',
    path: `/${wish.name}`,
    // Its own client says the content type even where there is no input, and others are refused.
    ...(!isRead(wish) && { body: 'input' in wish && wish.name !== 'save' ? wish.input : {} }),
  }),
  value: body => body.result.data,
  hasForm: false,
}

const OPERATIONS = {
  profile: 'query { profile { id name } }',
  cart: 'query { cart { items { article count } hint } }',
  add: 'mutation ($article: Article!) { add(article: $article) { article count } }',
  login: `mutation ($username: String!, $password: String!, $remember: Boolean! = false) {
    login(username: $username, password: $password, remember: $remember) { id name }
  }`,
  logout: 'mutation { logout }',
  save: 'mutation { save }',
}
const cartOf = (items: { article: string; count: number }[]) =>
  Object.fromEntries(items.map(({ article, count }) => [article, count]))

/** Operations of GraphQL, each sent with POST. */
export const graphql: Dialect = {
  request: wish => ({
    method: 'POST',
    path: '/graphql',
    body: { query: OPERATIONS[wish.name], ...('input' in wish && wish.name !== 'save' && { variables: wish.input }) },
    headers: { 'Content-Type': 'application/json', Accept: 'application/graphql-response+json' },
  }),
  value: ({ data, errors }) => {
    if (!data) throw new Error(JSON.stringify(errors))
    if (data.cart) return { cart: cartOf(data.cart.items), hint: data.cart.hint }
    if (data.add) return cartOf(data.add)
    return data.profile ?? data.login ?? data
  },
  hasForm: false,
}
