import { expect, it } from 'vitest'
import { Client } from '../support/example-service.ts'
import { startRecipe } from './recipe.ts'
import { type Connect, packageOf, walkSockets } from './sockets.ts'

const connect: Connect = (url, extraHeaders) =>
  new Promise((resolve, reject) => {
    const { io } = packageOf('socket-io', 'socket.io-client')
    const socket = io(url, { extraHeaders, transports: ['websocket'], reconnection: false, forceNew: true })
    socket.once('connect_error', (error: Error & { description?: Error }) => {
      socket.close()
      reject(error.description?.message ? new Error(error.description.message) : error)
    })
    const closed = new Promise<void>(done => socket.once('disconnect', () => done()))
    const next = (event: string) => new Promise<string>(heard => socket.once(event, heard))
    next('hello').then(hello =>
      resolve({
        hello,
        say(text) {
          const answer = next('said')
          socket.emit('say', text)
          return answer
        },
        closed,
        close: () => socket.close(),
      }),
    )
  })

// The client hears that it was refused, not why.
walkSockets('the recipe for socket.io', 'socket-io', connect, { anonymous: /400/, foreign: /400/, outage: /400/ })

it('the recipe for socket.io recovers no socket: what one hears is of the session of its own handshake', async () => {
  const running = await startRecipe('socket-io')
  const ada = new Client(running.url)
  await ada.send('POST', '/login')
  const { io } = packageOf('socket-io', 'socket.io-client')
  const socket = io(running.url, {
    extraHeaders: { Cookie: ada.cookie },
    transports: ['websocket'],
    reconnectionDelay: 1,
    forceNew: true,
  })
  const hello = () => new Promise(heard => socket.once('hello', heard))
  try {
    await hello()
    const { id } = socket
    const again = hello()
    socket.io.engine.close() // its connection is cut
    await again
    expect([Boolean(socket.recovered), socket.id]).toEqual([false, expect.not.stringMatching(id)])
  } finally {
    socket.close()
    await running.stop()
  }
}, 120_000)
