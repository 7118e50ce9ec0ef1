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
  /** Whether it has GET /account with a form, whose token POST /account asks for. */
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
