import { SessionError } from '../contract/errors.ts'
import type { Advice } from './unsent.ts'

export const crossOrigin = () =>
  new SessionError(
    'ERR_SESSION_CROSS_ORIGIN',
    "a page of another origin sent this request; list it in the edge's `origins` if it may",
  )

export const insecure = (advice: Advice) =>
  new SessionError(
    'ERR_SESSION_INSECURE',
    `this request did not come over HTTPS; ${advice.insecure}, to do without HTTPS set \`cookie: { secure: false }\``,
  )

export const headersSent = () =>
  new SessionError(
    'ERR_SESSION_HEADERS_SENT',
    'no cookie can be sent: there is no response, or its head was sent already; begin sessions before that',
  )
