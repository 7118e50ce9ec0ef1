// @ts-check
// What the servers are asked. Users up to KEPT have the sessions that requests are made with; logins and logouts are
// those of the others, so that nothing ends a session that is still needed.
export const KEPT = 200
/** better-auth has this many users. */
const USERS = 2000

/** @param {number} count @param {number} first */
const others = (count, first) => Array.from({ length: count }, (_, at) => KEPT + 1 + ((first + at) % (USERS - KEPT)))

/** @param {number} count @param {(at: number) => Buffer} make */
const times = (count, make) => Array.from({ length: count }, (_, at) => make(at))

/**
 * @typedef {object} Operation
 * @property {string} title
 * @property {number} connections
 * @property {(row: import('./stores.mjs').Row) => boolean} [skips]
 * @property {(load: import('./load.mjs').Load, cookies: readonly string[], count: number, first: number) => Promise<Buffer[]>} requests
 */

/** @type {(path: string) => Operation['requests']} */
const withFreshSession = path => async (load, _, count, first) => {
  const cookies = await load.cookiesOf(others(count, first))
  return times(count, at => load.request('POST', path, cookies[at]))
}
/** @type {Operation['requests']} */
export const profiles = async (load, cookies, count, first) =>
  times(count, at => load.request('GET', '/profile', cookies[(first + at) % cookies.length]))

/** @type {Record<string, Operation>} */
export const OPERATIONS = {
  profile: { title: 'GET of a user', connections: 64, requests: profiles },
  one: { title: 'the same, 1 connection', connections: 1, requests: profiles },
  anonymous: {
    title: 'anonymous GET',
    connections: 64,
    requests: async (load, _, count) => times(count, () => load.request('GET', '/profile')),
  },
  write: {
    title: 'a request that writes',
    connections: 64,
    requests: async (load, cookies, count, first) =>
      times(count, at => load.request('POST', `/write?value=${first + at}`, cookies[(first + at) % cookies.length])),
  },
  login: {
    title: 'login',
    connections: 64,
    requests: async (load, _, count, first) =>
      others(count, first).map(user => load.request('POST', `/login?user=${user}`)),
  },
  logout: {
    title: 'logout',
    connections: 64,
    skips: row => row.keepsNothing === true,
    requests: withFreshSession('/logout'),
  },
  everywhere: {
    title: 'logout-everywhere',
    connections: 64,
    skips: row => row.everywhere !== true,
    requests: withFreshSession('/logout-everywhere'),
  },
}
