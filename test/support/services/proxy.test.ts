import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Server } from 'node:net'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { type FaultProxy, startProxy } from './proxy.ts'

/** What each request was, in the order in which the server met them. */
let met: string[]
let server: Server
let proxy: FaultProxy
beforeEach(async () => {
  met = []
  server = createServer(socket => {
    socket.on('error', () => {})
    socket.on('data', request => {
      met.push(`${request}`)
      socket.write(`answer to ${request}`)
    })
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  proxy = await startProxy((server.address() as AddressInfo).port)
})
afterEach(async () => {
  await proxy.stop()
  server.close()
})

async function ask(request: string): Promise<string> {
  const socket = connect({ port: proxy.port, host: '127.0.0.1' })
  socket.on('error', () => {})
  socket.write(request)
  const answer = await Promise.race([once(socket, 'data').then(String), once(socket, 'close').then(() => 'closed')])
  socket.destroy()
  return answer
}

const LONG = 100_000

describe('a request that is delivered twice', () => {
  it('loses its first answer, and reaches the server again on another connection', async () => {
    const twice = proxy.deliverTwice('write', 0)
    expect(await ask('write 1')).toBe('closed')
    await twice
    await expect.poll(() => met).toEqual(['write 1', 'write 1'])
  })
  it('has been there twice before the client, which sends it again, is answered', async () => {
    void proxy.deliverTwice('write', LONG)
    expect(await ask('write 1')).toBe('closed')
    expect(await ask('write 1')).toBe('answer to write 1')
    expect(met).toEqual(['write 1', 'write 1', 'write 1'])
  })
  it('holds up no other request', async () => {
    void proxy.deliverTwice('write', LONG)
    expect(await ask('write 1')).toBe('closed')
    expect(await ask('write 2')).toBe('answer to write 2')
    expect(met).toEqual(['write 1', 'write 2'])
  })
})
