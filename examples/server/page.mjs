// @ts-check
// The page for people: HTML with the session's state filled in, and its script, style and icon as files of their own,
// so that the Content-Security-Policy needs no exception.
import { readFileSync } from 'node:fs'

/** @param {string} name */
const read = name => readFileSync(new URL(name, import.meta.url), 'utf8')

const HTML = read('page.html')

/** @type {Record<string, import('./app.mjs').Answer>} */
const ASSETS = Object.fromEntries(
  [
    ['/page.css', 'text/css'],
    ['/page.js', 'text/javascript'],
    ['/page.svg', 'image/svg+xml'],
  ].map(([path, type]) => [
    path,
    {
      status: 200,
      headers: { 'Content-Type': `${type}; charset=utf-8`, 'Cache-Control': 'no-cache' },
      body: read(`.${path}`),
    },
  ]),
)

const HEADERS = {
  'Content-Type': 'text/html; charset=utf-8',
  'Cache-Control': 'no-store',
  'Content-Security-Policy': [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "img-src 'self'",
    "connect-src 'self'",
    "form-action 'self'",
    "base-uri 'none'",
    "frame-ancestors 'none'",
  ].join('; '),
  'Referrer-Policy': 'same-origin',
  'Cross-Origin-Opener-Policy': 'same-origin',
}

const REFUSAL = 'Wrong name or password.'

/** @param {string} text */
const escapeHtml = text => text.replace(/[&<>"']/g, character => `&#${character.charCodeAt(0)};`)

/** @param {string} path */
export const asset = path => (Object.hasOwn(ASSETS, path) ? ASSETS[path] : undefined)

/** @param {number} instant epoch ms */
const instantOf = instant => ({ iso: new Date(instant).toISOString(), text: `${new Date(instant).toUTCString()}` })

const BOUND = 'Bound to this device: a copied cookie is soon worth nothing. Since'
const UNBOUND = 'Not bound to this device: a copied cookie would work elsewhere.'

/** @param {import('./app.mjs').Times} times */
function timeLine({ now, createdAt, remembered, seenAt, rotatedAt, expiresAt, absoluteExpiresAt, boundAt }) {
  /** @type {Record<string, string>} */
  const values = {
    now: `${now}`,
    how: remembered ? 'by the remember cookie of this browser' : 'with the password',
    bound: boundAt === null ? UNBOUND : BOUND,
    idleMax: `${expiresAt - seenAt}`,
    idleLeft: `${Math.max(0, expiresAt - now)}`,
    absoluteMax: `${absoluteExpiresAt - createdAt}`,
    absoluteLeft: `${Math.max(0, absoluteExpiresAt - now)}`,
  }
  const instants = { createdAt, seenAt, rotatedAt, expiresAt, absoluteExpiresAt, boundAt }
  for (const [name, instant] of Object.entries(instants)) {
    const { iso, text } = instant === null ? { iso: '', text: name === 'boundAt' ? '' : 'not yet' } : instantOf(instant)
    Object.assign(values, { [`${name}Iso`]: iso, [`${name}Text`]: text })
  }
  return values
}

/**
 * `failed`: the name of a login that was refused.
 * @param {{ state: 'unavailable' } | { state: 'out', failed?: string }
 *   | { state: 'in', user: { id: bigint, name: string }, csrf: string, times: import('./app.mjs').Times }} page
 * @returns {import('./app.mjs').Answer}
 */
export function renderPage(page) {
  const { state } = page
  /** @type {Record<string, string>} */
  const values = { state }
  if (state === 'in')
    Object.assign(values, { name: page.user.name, id: `${page.user.id}`, csrf: page.csrf, ...timeLine(page.times) })
  const isRefused = state === 'out' && page.failed !== undefined
  if (isRefused) Object.assign(values, { failed: page.failed, refusal: REFUSAL })
  const body = HTML.replace(/\{\{(\w+)\}\}/g, (_, name) => escapeHtml(values[name] ?? ''))
    // `hidden` and not a style: a screen reader and a browser without style see the same parts.
    .replace(/data-for="(\w+)"/g, (part, wanted) => (wanted === state ? part : `${part} hidden`))
  return { status: state === 'unavailable' ? 503 : isRefused ? 401 : 200, headers: HEADERS, body }
}
