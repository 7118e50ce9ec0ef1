// A client of one server through which a test sees, holds up or fails single commands on their way to it.
import type { IoredisClient } from 'coatcheck/stores/redis'
import type { Redis } from 'ioredis'
import { SLOTS } from '../../../stores/redis/keys.ts'
import type { Script } from '../../../stores/redis/scripts.ts'

/** A command with its arguments, and what sends it on. */
export type Tap = (command: string[], send: () => Promise<unknown>) => Promise<unknown>

/** Whether a command runs this script. */
export const runs = (script: Script, [command, sha]: string[]) => command === 'EVALSHA' && sha === script.sha

/** The keys that a script is given. */
export const keysGiven = ([, , count, ...rest]: string[]) => rest.slice(0, Number(count))

/**
 * The client, with each command going through `tap`.
 *
 * @param isCluster it tells of itself what a client of a cluster tells: one master that has all slots
 */
export function tapped(client: Redis, tap: Tap, isCluster = false): IoredisClient {
  const node = {
    call: (command: string, args: string[]) => tap([command, ...args], () => client.call(command, args)),
    get status() {
      return client.status
    },
    options: client.options,
  }
  const { host, port } = client.options
  if (!isCluster) return node
  const slots = new Array(SLOTS).fill([`${host}:${port}`])
  return Object.assign(Object.create(node), { isCluster, slots, nodes: () => [node] })
}
