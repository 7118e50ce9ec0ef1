/**
 * Calls back in the next turn of the event loop, after the sockets were read. Where a test imitates a browser (Jest's jsdom),
 * there is no `setImmediate`, and one that throws inside a timer would end the process.
 */
export function nextTurn(callback: () => void): void {
  if (typeof setImmediate === 'function') setImmediate(callback)
  else setTimeout(callback, 0)
}
