import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, describe, expect, it } from 'vitest'
import { compileWorker } from '../compile-worker.ts'
import { freePort, start, threadStates, until } from './process.ts'

const open: { close(): unknown }[] = []
afterEach(() => {
  for (const server of open.splice(0)) server.close()
})

/** Listens as a server of a test does; rejects where the port is taken. */
const listen = (port: number) =>
  new Promise<number>((resolve, reject) => {
    const server = createServer()
    open.push(server)
    server.once('error', reject)
    server.listen(port, '127.0.0.1', () => resolve((server.address() as { port: number }).port))
  })

describe('a port for a private server', () => {
  it('is free, never given twice, and below those that the system gives to others', async () => {
    const given = await Promise.all(Array.from({ length: 300 }, freePort))
    expect(new Set(given).size).toBe(300)
    expect([Math.min(...given) >= 10_000, Math.max(...given) < 32_768]).toEqual([true, true])
    await Promise.all(given.map(listen))
    // Another process tries the very same ports: it may have none of them.
    const other = `
      const { createSocket } = require('node:dgram')
      const bind = port => new Promise(resolve => {
        const socket = createSocket('udp4')
        socket.once('error', () => resolve(false))
        socket.bind({ port, address: '127.0.0.1', exclusive: true }, () => { socket.close(); resolve(true) })
      })
      Promise.all([${given}].map(bind)).then(all => console.log(all.filter(Boolean).length))`
    const running = start(process.execPath, ['-e', other])
    await until('an answer', () => expect(running.output()).not.toBe(''))
    expect(running.output().trim()).toBe('0')
  })
})

describe('a private server that is paused', () => {
  it.runIf(process.platform === 'linux')('stands still at once, with all its threads, and goes on', async () => {
    const spin = `const { Worker, isMainThread } = require('node:worker_threads')
      if (isMainThread) { for (let i = 0; i < 6; i++) new Worker(__filename); console.log('spinning') }
      for (;;) Math.random()`
    const folder = mkdtempSync(join(tmpdir(), 'coatcheck-paused-'))
    writeFileSync(join(folder, 'spin.cjs'), spin)
    const server = start(process.execPath, [join(folder, 'spin.cjs')])
    try {
      await until('the threads running', () => expect(server.output()).toContain('spinning'), { server })
      for (let times = 0; times < 20; times++) {
        server.pause()
        expect(new Set(threadStates(server.child.pid!))).toEqual(new Set(['T']))
        server.resume()
        await until('the threads running', () => expect(threadStates(server.child.pid!)).toContain('R'), { server })
      }
    } finally {
      await server.stop('SIGKILL')
      rmSync(folder, { recursive: true })
    }
  })
})

it.each([
  ['has ended', process.execPath, 'port taken'],
  ['could not be started', '/nowhere/redis-server', 'ENOENT'],
])('waiting for a server ends at once, with what it printed, when its process %s', async (_, program, printed) => {
  const server = start(program, ['-e', 'console.error("port taken"); process.exit(1)'])
  const asked = () => Promise.reject(new Error('no answer'))
  await expect(until('the server answering', asked, { server, timeout: 1e9 })).rejects.toThrow(
    new RegExp(`the server answering: the process has ended[\\s\\S]*${printed}`),
  )
})

describe('a server that nobody stops', () => {
  it.each(['process.exit()', "process.kill(process.pid, 'SIGKILL')"])(
    'ends with the process that started it, and its folder is gone, after %s',
    async end => {
      const { path, stop } = await compileWorker('support/services/process')
      try {
        const folder = mkdtempSync(join(tmpdir(), 'coatcheck-guarded-'))
        const program = `setInterval(() => require('node:fs').writeFileSync('${folder}/alive', ''), 10)`
        const starter = `const { startGuarded, until } = await import('${path}')
          startGuarded('${folder}', process.execPath, ['-e', ${JSON.stringify(program)}])
          await until('the server running', () => process.getBuiltinModule('node:fs').readFileSync('${folder}/alive'))
          ${end}`
        const running = start(process.execPath, ['--input-type=module', '-e', starter])
        await until('the end', () => expect(running.ended()).toBe(true))
        await until('the folder removed', () => expect(existsSync(folder)).toBe(false))
      } finally {
        stop()
      }
    },
  )
})
