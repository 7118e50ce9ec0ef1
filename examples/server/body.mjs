// @ts-check
// What clients send: request bodies and their fields. Whatever is wrong becomes an HttpError with its status.

/** 16 KiB. */
const LIMIT = 16_384

/** An answer that is not a success: its JSON is `{ "error": code, "message": message }`. */
export class HttpError extends Error {
  /**
   * @param {number} status
   * @param {string} code snake_case
   * @param {string} message for people
   * @param {Record<string, string>} [headers]
   */
  constructor(status, code, message, headers = {}) {
    super(message)
    this.status = status
    this.code = code
    this.headers = headers
  }
}

/** The client went away in the middle of its request, so that no answer can reach it. */
export class Aborted extends Error {}

/**
 * @param {import('node:http').IncomingMessage} request
 * @returns {string} the media type in lower case, without parameters
 */
export const mediaType = request => (request.headers['content-type'] ?? '').split(';')[0]?.trim().toLowerCase() ?? ''

/**
 * @param {import('node:http').IncomingMessage} request
 * @returns {Promise<string>}
 */
async function readText(request) {
  const tooLarge = () => new HttpError(413, 'body_too_large', `The body is larger than ${LIMIT} bytes.`)
  if (Number(request.headers['content-length'] ?? 0) > LIMIT) throw tooLarge()
  const chunks = []
  let size = 0
  try {
    // Leaving the loop must not destroy the request: the connection still has to carry the answer.
    for await (const chunk of request.iterator({ destroyOnReturn: false })) {
      size += chunk.length
      if (size > LIMIT) throw tooLarge()
      chunks.push(chunk)
    }
  } catch (error) {
    throw error instanceof HttpError ? error : new Aborted('the client went away', { cause: error })
  }
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(Buffer.concat(chunks))
  } catch {
    throw new HttpError(400, 'malformed_body', 'The body is not UTF-8.')
  }
}

/**
 * @param {import('node:http').IncomingMessage} request
 * @param {string} type
 */
function requireType(request, type) {
  // A form on another site cannot send JSON without asking first (CORS preflight): no other type is accepted.
  if (mediaType(request) !== type) throw new HttpError(415, 'unsupported_media_type', `Send the body as ${type}.`)
  if ((request.headers['content-encoding'] ?? 'identity').toLowerCase() !== 'identity')
    throw new HttpError(415, 'unsupported_media_type', 'Send the body without Content-Encoding.')
}

/**
 * The members of a JSON object.
 * @param {import('node:http').IncomingMessage} request
 * @returns {Promise<Record<string, unknown>>}
 */
export async function readJson(request) {
  requireType(request, 'application/json')
  const text = await readText(request)
  let body
  try {
    body = JSON.parse(text)
  } catch {
    throw new HttpError(400, 'malformed_body', 'The body is not valid JSON.')
  }
  if (typeof body !== 'object' || body === null || Array.isArray(body))
    throw new HttpError(400, 'invalid_fields', 'The body has to be a JSON object.')
  return body
}

/**
 * The fields of a plain HTML form.
 * @param {import('node:http').IncomingMessage} request
 */
export async function readForm(request) {
  requireType(request, 'application/x-www-form-urlencoded')
  return new URLSearchParams(await readText(request))
}

/**
 * @param {Record<string, unknown>} body
 * @param {string} name
 * @returns {string}
 */
export function textField(body, name) {
  const value = Object.hasOwn(body, name) ? body[name] : undefined
  if (typeof value !== 'string') throw new HttpError(400, 'invalid_fields', `"${name}" has to be a string.`)
  return value
}

/**
 * @param {Record<string, unknown>} body
 * @param {string} name
 * @returns {boolean} false where it is missing
 */
export function flagField(body, name) {
  const value = Object.hasOwn(body, name) ? body[name] : false
  if (typeof value !== 'boolean') throw new HttpError(400, 'invalid_fields', `"${name}" has to be true or false.`)
  return value
}
