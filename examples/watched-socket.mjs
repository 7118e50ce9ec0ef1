// @ts-check
// A socket for Postgres.js that is closed when something was sent and nothing came for four seconds, without TLS alone
// (docs/stores/postgresql.md). Its types do not know the option: postgres(url, { socket: watched }).
import { connect } from 'node:net'

/** Longer than your longest statement takes, in ms. */
const LONGEST = 4000

/** @param {{ host: string[], port: number[] }} options */
export function watched({ host, port }) {
  const socket = connect(port[0] ?? 5432, host[0])
  const { write } = socket
  /** @type {NodeJS.Timeout | undefined} */
  let timer
  const heard = () => {
    clearTimeout(timer)
    timer = undefined
  }
  /** @param {unknown[]} args */
  const watchedWrite = (...args) => {
    timer ??= setTimeout(() => socket.destroy(new Error('the connection was silent')), LONGEST)
    return write.apply(socket, /** @type {any} */ (args))
  }
  socket.write = watchedWrite
  return socket.on('data', heard).on('close', heard)
}
