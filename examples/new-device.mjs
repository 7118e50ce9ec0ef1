// @ts-check
// Tells a login on a browser that this user has never used (docs/guide/new-device.md). A cookie of its own knows the browser
// again; the database keeps a hash of it, for the user alone and for longer than any session.
/** @import { IncomingMessage, ServerResponse } from 'node:http' */
import { createHash, randomBytes } from 'node:crypto'

const COOKIE = /(?:^|; *)device_id=([\w-]{22})(?:;|$)/
/** How many browsers of a user are remembered: the latest. */
const MOST = 20

/**
 * Call it once the login has succeeded. Whether to tell the user: not on the first device, nor on one that is known.
 * @param {IncomingMessage} request @param {ServerResponse} response @param {bigint | string} userId
 * @param {{ of(userId: bigint | string): Promise<string[]>, save(userId: bigint | string, known: string[]): Promise<unknown> }} devices
 *   a column of yours
 */
export async function isNewDevice(request, response, userId, devices) {
  const id = COOKIE.exec(request.headers.cookie ?? '')?.[1] ?? randomBytes(16).toString('base64url')
  // Sent anew at each login: browsers keep a cookie for 400 days at most.
  response.appendHeader('Set-Cookie', `device_id=${id}; Max-Age=34560000; Path=/; HttpOnly; Secure; SameSite=Lax`)
  const own = createHash('sha256').update(`${userId} ${id}`).digest('base64url')
  const known = await devices.of(userId)
  await devices.save(userId, [own, ...known.filter(each => each !== own)].slice(0, MOST))
  return known.length > 0 && !known.includes(own)
}
