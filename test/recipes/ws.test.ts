import { once } from 'node:events'
import { connect as connectTcp } from 'node:net'
import { expect, it } from 'vitest'
import { Client } from '../support/example-service.ts'
import { until } from '../support/services/process.ts'
import { startRecipe } from './recipe.ts'
import { type Connect, packageOf, walkSockets } from './sockets.ts'

const connect: Connect = (url, headers) =>
  new Promise((resolve, reject) => {
    const { WebSocket } = packageOf('ws', 'ws')
    const socket = new WebSocket(url.replace('http', 'ws'), { headers })
    socket.once('error', reject)
    const closed = new Promise<void>(done => socket.once('close', done))
    const next = () => new Promise<string>(heard => socket.once('message', (text: Buffer) => heard(`${text}`)))
    next().then(hello =>
      resolve({
        hello,
        say(text) {
          const answer = next()
          socket.send(text)
          return answer
        },
        closed,
        close: () => socket.close(),
      }),
    )
  })

walkSockets('the recipe for ws', 'ws', connect, { anonymous: /401/, foreign: /403/, outage: /503/ })

/** Preloaded: the recipe prints what it answers, also where that reaches nobody. */
const TELLS = `import { createRequire } from 'node:module'
  const { prototype } = createRequire(process.cwd() + '/app.mjs')('ws')
  const { send } = prototype
  prototype.send = function (text) { console.log('answers', text); return send.call(this, text) }`

/** A text in a frame of a client, whose mask is zero (RFC 6455, section 5.2). */
const frameOf = (text: string) =>
  Buffer.concat([Buffer.from([0x81, 0x80 | text.length, 0, 0, 0, 0]), Buffer.from(text)])

it('serves nothing after the logout to a client that does not answer the close, and cuts it off', async () => {
  const env = { NODE_OPTIONS: `--import data:text/javascript,${encodeURIComponent(TELLS)}` }
  const running = await startRecipe('ws', { env: () => env })
  const { host, port } = new URL(running.url)
  const socket = connectTcp(Number(port), '127.0.0.1')
  try {
    const ada = new Client(running.url)
    await ada.send('POST', '/login')
    const head = {
      Host: host,
      Cookie: ada.cookie,
      Connection: 'Upgrade',
      Upgrade: 'websocket',
      'Sec-WebSocket-Version': 13,
      'Sec-WebSocket-Key': Buffer.alloc(16).toString('base64'),
    }
    const lines = Object.entries(head).map(([name, value]) => `${name}: ${value}\r\n`)
    socket.resume().write(`GET / HTTP/1.1\r\n${lines.join('')}\r\n`)
    await until('it is greeted', () => expect(running.output()).toContain('answers Hello ada'))
    socket.write(frameOf('before'))
    await until('it is served', () => expect(running.output()).toContain('answers You said before'))

    await ada.send('POST', '/logout')
    socket.on('error', () => {}) // it is cut off while it writes
    for (let message = 0; message < 10; message++) socket.write(frameOf('after'))
    await once(socket, 'close')
    expect(running.output()).not.toContain('You said after')
  } finally {
    socket.destroy()
    await running.stop()
  }
}, 25_000)
