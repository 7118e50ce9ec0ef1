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

/** @param {string} text */
const escapeHtml = text => text.replace(/[&<>"']/g, character => `&#${character.charCodeAt(0)};`)

/** @param {string} path */
export const asset = path => (Object.hasOwn(ASSETS, path) ? ASSETS[path] : undefined)

/**
 * @param {{ id: bigint, name: string } | null | 'unavailable'} user
 * @param {string | null} [csrf]
 * @returns {import('./app.mjs').Answer}
 */
export function renderPage(user, csrf) {
  const state = user === 'unavailable' ? user : user ? 'in' : 'out'
  /** @type {Record<string, string>} */
  const values = { state, csrf: csrf ?? '' }
  if (user !== null && user !== 'unavailable') Object.assign(values, { name: user.name, id: `${user.id}` })
  const body = HTML.replace(/\{\{(\w+)\}\}/g, (_, name) => escapeHtml(values[name] ?? ''))
    // `hidden` and not a style: a screen reader and a browser without style see the same parts.
    .replace(/data-for="(\w+)"/g, (part, wanted) => (wanted === state ? part : `${part} hidden`))
  return { status: state === 'unavailable' ? 503 : 200, headers: HEADERS, body }
}
