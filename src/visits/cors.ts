import type { IncomingMessage, ServerResponse } from 'node:http'
import { DEFAULTS } from '../manager/options.ts'
import { checkOptions, listOf, type OptionPlace, type Rule, rule } from '../text/check-options.ts'
import { aDuration, type Duration, milliseconds } from '../text/duration.ts'
import { checkNode } from './check-arguments.ts'
import { originSet } from './cross-origin.ts'
import type { Gate } from './gate.ts'
import { NO_RULES } from './head.ts'
import { guardHead } from './node-head.ts'

/** What `cors` takes: which pages of other origins may call this server with cookies. */
export interface CorsOptions {
  /** Whose pages may read responses with the user's cookies, exactly as in `Origin`. */
  origins: readonly string[]
  /** Methods besides GET, HEAD and POST, which need no permission. @default ['PUT', 'PATCH', 'DELETE'] */
  methods?: readonly string[]
  /** Request headers that need permission. @default ['content-type'] */
  headers?: readonly string[]
  /** Response headers that the page may read. @default none */
  exposeHeaders?: readonly string[]
  /** How long a browser keeps the answer to a preflight. @default '10m' */
  maxAge?: Duration
}

/** Of other CORS middleware. */
const HINTS = {
  origin: 'it is called origins, a list of exact ones',
  credentials: 'they are always allowed, to the origins listed',
  allowedHeaders: 'it is called headers',
  allowHeaders: 'it is called headers',
  allowMethods: 'it is called methods',
  exposedHeaders: 'it is called exposeHeaders',
  preflightContinue: 'a preflight is always answered',
  optionsSuccessStatus: 'a preflight is always answered by 204',
}

const TOKEN = /^[!#$%&'+.^_`|~0-9A-Za-z-]+$/

/** With credentials '*' is a name like any other: it would allow nothing (Fetch Standard, 3.3.5). */
const tokens: Rule = listOf(
  'names',
  rule('exact names, no wildcard', value => typeof value === 'string' && TOKEN.test(value)),
)

const CORS: OptionPlace<CorsOptions> = {
  where: 'cors',
  required: ['origins'],
  hints: HINTS,
  rules: {
    origins: (value, name) => {
      if (originSet(value ?? [], name).size === 0) throw new TypeError('origins: expected at least one origin')
    },
    methods: tokens,
    headers: tokens,
    exposeHeaders: tokens,
    maxAge: aDuration,
  },
}

/**
 * CORS with credentials for the listed origins alone: `if (cors(request, response)) return`. It answers
 * `true` if the request was a preflight, which it has answered without reading any session. `trustedOrigins` of `nodeVisits`
 * has to list the same origins: CORS says who may read, the cross-origin guard who may send.
 * @throws TypeError that quotes an origin with a path or a wildcard
 */
export function cors(options: CorsOptions): Gate {
  checkOptions(CORS, options)
  const origins = originSet(options.origins, 'origins')
  const methods = (options.methods ?? DEFAULTS.cors.methods).join(', ')
  const headers = (options.headers ?? DEFAULTS.cors.headers).join(', ')
  const exposed = (options.exposeHeaders ?? DEFAULTS.cors.exposeHeaders).join(', ')
  const maxAge = Math.floor(milliseconds(options.maxAge ?? DEFAULTS.cors.maxAge, 'maxAge') / 1000)
  const rules = { ...NO_RULES, vary: ['Origin'] }
  const gate = (request: IncomingMessage, response: ServerResponse) => {
    checkNode('cors', request, response ?? null)
    // On every response, also to those without Origin: a cache must not give one origin's answer to another.
    guardHead(response, () => rules)
    const { origin } = request.headers
    const isAllowed = origin !== undefined && origins.has(origin)
    if (isAllowed) {
      response.setHeader('Access-Control-Allow-Origin', origin)
      response.setHeader('Access-Control-Allow-Credentials', 'true')
    }
    const isPreflight =
      request.method === 'OPTIONS' &&
      origin !== undefined &&
      request.headers['access-control-request-method'] !== undefined
    if (!isPreflight) {
      if (isAllowed && exposed !== '') response.setHeader('Access-Control-Expose-Headers', exposed)
      return false
    }
    if (isAllowed) {
      if (methods !== '') response.setHeader('Access-Control-Allow-Methods', methods)
      if (headers !== '') response.setHeader('Access-Control-Allow-Headers', headers)
      response.setHeader('Access-Control-Max-Age', maxAge)
    }
    response.writeHead(isAllowed ? 204 : 403, isAllowed ? {} : { 'Content-Length': 0 })
    response.end()
    return true
  }
  return gate as Gate
}
