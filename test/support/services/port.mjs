// @ts-check
// Ports for private servers.
import { randomInt } from 'node:crypto'
import { createSocket } from 'node:dgram'
import { connect } from 'node:net'

/**
 * Held until this process ends: one UDP socket for each port that was given.
 * @type {Set<import('node:dgram').Socket>}
 */
const claims = new Set()

/**
 * A loopback port for a private server: free, and given to nobody else while this process lives.
 *
 * It lies below the ports that systems hand out by themselves (Linux from 32768, others from 49152). From there, an
 * outgoing connection or a listener on port 0 could take it before the server binds it, or while the server is down
 * to be started again. Processes that ask at the same time are told apart by the UDP port of the same number.
 * @returns {Promise<number>}
 */
export async function freePort() {
  for (;;) {
    const port = randomInt(10_000, 32_768)
    const claim = createSocket('udp4').unref()
    if (!(await binds(claim, port))) continue
    if (!(await isTaken(port))) {
      claims.add(claim)
      return port
    }
    claim.close()
  }
}

/**
 * @param {import('node:dgram').Socket} socket
 * @param {number} port
 * @returns {Promise<boolean>}
 */
function binds(socket, port) {
  return new Promise(resolve => {
    socket.once('error', () => resolve(false))
    socket.bind({ port, address: '127.0.0.1', exclusive: true }, () => resolve(true))
  })
}

/**
 * Whether a server listens there. Asked, not tried: a process that is started in this moment has each socket of ours for some
 * time, and a port on which we listened would be taken for that long.
 * @param {number} port
 * @returns {Promise<boolean>}
 */
function isTaken(port) {
  return new Promise(resolve => {
    const socket = connect({ port, host: '127.0.0.1' })
    socket.once('error', () => resolve(false))
    socket.once('connect', () => {
      socket.destroy()
      resolve(true)
    })
  })
}
