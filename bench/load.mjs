// @ts-check
// A small keep-alive client: it sends prepared requests over a few connections, a bounded number of them, and reads no
// more of an answer than it must, so that on a small machine the server has most of the processor.
import { connect } from 'node:net'

const SLEEPER = new Int32Array(new SharedArrayBuffer(4))
const turn = () => new Promise(resolve => setImmediate(resolve))

// What a browser sends with a fetch, so that the headers cost every server what they cost in service.
const HEADERS = `Host: 127.0.0.1:PORT\r
Connection: keep-alive\r
User-Agent: Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36\r
Accept: application/json\r
Sec-Fetch-Site: same-origin\r
Sec-Fetch-Mode: cors\r
Sec-Fetch-Dest: empty\r
Accept-Encoding: gzip, deflate, br\r
Accept-Language: en-GB,en;q=0.9\r
`

/**
 * @param {string} method
 * @param {string} path
 * @param {number} port
 * @param {string} [cookie]
 */
export const request = (method, path, port, cookie) =>
  Buffer.from(
    `${method} ${path} HTTP/1.1\r\n${HEADERS.replace('PORT', String(port))}${cookie ? `Cookie: ${cookie}\r\n` : ''}${
      method === 'POST' ? 'Content-Length: 0\r\n' : ''
    }\r\n`,
    'latin1',
  )

/** @typedef {{ head: string, body: string }} Answer */

/** The Cookie header that a browser sends back: of several cookies with one name the last. @param {string} head */
export const cookieOf = head =>
  [...new Map([...head.matchAll(/^set-cookie: *([^=\r]+)=([^;\r]*)/gim)].map(([, name, value]) => [name, value]))]
    .map(([name, value]) => `${name}=${value}`)
    .join('; ')

/** One connection; answers come in the order of the requests. */
class Connection {
  #socket
  #received = ''
  #isOpen = true
  /** @type {((answer: Answer) => void) | null} */
  #resolve = null
  /** @type {((error: Error) => void) | null} */
  #reject = null

  /** @param {number} port */
  constructor(port) {
    this.#socket = connect({ port, host: '127.0.0.1', noDelay: true })
    this.#socket.setEncoding('latin1')
    this.#socket.on('data', chunk => this.#read(String(chunk)))
    this.#socket.on('error', error => this.#reject?.(error))
    this.#socket.on('close', () => {
      this.#isOpen = false
      this.#reject?.(new Error('the server closed the connection'))
    })
  }

  /** @param {Buffer} bytes @returns {Promise<Answer>} */
  send(bytes) {
    return new Promise((resolve, reject) => {
      if (!this.#isOpen) return reject(new Error('the server closed the connection before'))
      this.#resolve = resolve
      this.#reject = reject
      this.#socket.write(bytes)
    })
  }

  close() {
    this.#reject = null
    this.#socket.destroy()
  }

  /** @param {string} chunk */
  #read(chunk) {
    this.#received += chunk
    const end = this.#received.indexOf('\r\n\r\n')
    if (end === -1) return
    const length = /\r\ncontent-length: *(\d+)/i.exec(this.#received)
    if (!length || length.index > end) {
      this.#reject?.(new Error(`an answer without Content-Length:\n${this.#received}`))
      return
    }
    const size = end + 4 + Number(length[1])
    if (this.#received.length < size) return
    const answer = { head: this.#received.slice(0, end), body: this.#received.slice(end + 4, size) }
    this.#received = this.#received.slice(size)
    this.#resolve?.(answer)
  }
}

/** Connections to one server that stay open from round to round. */
export class Load {
  #port
  #connections

  /**
   * @param {number} port
   * @param {number} connections
   */
  constructor(port, connections) {
    this.#port = port
    this.#connections = Array.from({ length: connections }, () => new Connection(port))
  }

  /**
   * Sends one request on each connection, the next ones when all are answered, and looks for the answers now and then. It
   * does not wait for them on the sockets: a server that answers slowly would pay for waking this process at each answer,
   * a fast one would find it awake, and the comparison would be of that.
   * @param {readonly Buffer[]} requests
   */
  async bursts(requests) {
    for (let first = 0; first < requests.length; first += this.#connections.length) {
      const burst = requests.slice(first, first + this.#connections.length)
      let open = burst.length
      let failure = /** @type {Error | null} */ (null)
      for (const [at, bytes] of burst.entries()) {
        const connection = /** @type {Connection} */ (this.#connections[at])
        connection.send(bytes).then(
          ({ head }) => {
            open -= 1
            if (!head.startsWith('HTTP/1.1 200')) failure = new Error(`not 200: ${head}`)
          },
          error => {
            failure = error
          },
        )
      }
      while (open > 0) {
        if (failure) throw failure
        Atomics.wait(SLEEPER, 0, 0, 1)
        await turn()
      }
    }
  }

  /**
   * Sends the next request on a connection as soon as its last one is answered. `onAnswer` gets the place of the request,
   * and its answer.
   * @param {readonly Buffer[]} requests
   * @param {(at: number, answer: Answer) => void} [onAnswer]
   */
  async stream(requests, onAnswer) {
    let next = 0
    await Promise.all(
      this.#connections.map(async connection => {
        while (next < requests.length) {
          const at = next
          next += 1
          const answer = await connection.send(/** @type {Buffer} */ (requests[at]))
          if (!answer.head.startsWith('HTTP/1.1 200')) throw new Error(`not 200: ${answer.head}\n${answer.body}`)
          onAnswer?.(at, answer)
        }
      }),
    )
  }

  /**
   * Logs users in and answers the Cookie header of each.
   * @param {readonly number[]} users
   */
  async cookiesOf(users) {
    /** @type {string[]} */
    const cookies = []
    await this.stream(
      users.map(user => request('POST', `/login?user=${user}`, this.#port)),
      (at, { head }) => {
        cookies[at] = cookieOf(head)
      },
    )
    return cookies
  }

  /** @param {string} method @param {string} path @param {string} [cookie] */
  request(method, path, cookie) {
    return request(method, path, this.#port, cookie)
  }

  close() {
    for (const connection of this.#connections) connection.close()
  }
}
