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

/** One connection; answers come in the order of the requests. */
class Connection {
  #socket
  #received = ''
  /** @type {((answer: { head: string, body: string }) => void) | null} */
  #resolve = null
  /** @type {((error: Error) => void) | null} */
  #reject = null

  /** @param {number} port */
  constructor(port) {
    this.#socket = connect({ port, host: '127.0.0.1', noDelay: true })
    this.#socket.setEncoding('latin1')
    this.#socket.on('data', chunk => this.#read(String(chunk)))
    this.#socket.on('error', error => this.#reject?.(error))
    this.#socket.on('close', () => this.#reject?.(new Error('the server closed the connection')))
  }

  /** @param {Buffer} bytes */
  send(bytes) {
    return new Promise((resolve, reject) => {
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
  /** @type {Buffer[]} */
  #requests = []
  #next = 0

  /**
   * @param {number} port
   * @param {number} connections
   */
  constructor(port, connections) {
    this.#port = port
    this.#connections = Array.from({ length: connections }, () => new Connection(port))
  }

  /**
   * Logs users in, checks that each gets its own profile, and keeps the requests for the rounds.
   * @param {number} users
   */
  async logIn(users) {
    const connection = /** @type {Connection} */ (this.#connections[0])
    for (let user = 1; user <= users; user += 1) {
      const { head } = await connection.send(request('POST', `/login?user=${user}`, this.#port))
      const cookies = [...head.matchAll(/^set-cookie: *([^;\r]+)/gim)].map(([, cookie]) => cookie)
      const profile = request('GET', '/profile', this.#port, cookies.join('; '))
      const { body } = await connection.send(profile)
      if (body !== `{"id":${user},"name":"user ${user}"}`) throw new Error(`a wrong profile: ${head}\n${body}`)
      this.#requests.push(profile)
    }
  }

  /**
   * Sends `count` requests (rounded up to whole bursts), one on each connection at a time, the sessions in turn, and
   * looks for the answers now and then. It does not wait for them on the sockets: a server that answers slowly would pay
   * for waking this process at each answer, a fast one would find it awake, and the comparison would be of that.
   * Answers how many it sent.
   * @param {number} count
   */
  async run(count) {
    let sent = 0
    for (; sent < count; sent += this.#connections.length) {
      let open = this.#connections.length
      let failure = /** @type {Error | null} */ (null)
      for (const connection of this.#connections) {
        this.#next = (this.#next + 1) % this.#requests.length
        connection.send(/** @type {Buffer} */ (this.#requests[this.#next])).then(
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
    return sent
  }

  close() {
    for (const connection of this.#connections) connection.close()
  }
}
