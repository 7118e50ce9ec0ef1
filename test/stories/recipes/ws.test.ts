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
