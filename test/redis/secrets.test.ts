import { RedisStore } from 'coatcheck/stores/redis'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { failure } from '../support/failure.ts'
import { call, T0 } from '../support/records.ts'
import { STANDALONE } from '../support/redis/clients.ts'
import { failuresOf, leaked, PRIVATE } from '../support/scan.ts'
import { describeEngine } from '../support/services/engines.ts'
import { type FaultProxy, startProxy } from '../support/services/proxy.ts'
import { type RedisServer, startRedis } from '../support/services/redis.ts'

describeEngine('redis', 'an error of a Redis client that is logged', () => {
  let server: RedisServer
  let proxy: FaultProxy
  beforeEach(async () => {
    server = await startRedis()
    proxy = await startProxy(server.port)
  })
  afterEach(async () => {
    await proxy.stop()
    await server.stop()
  })

  const refuse = (command: string) => server.cli('ACL', 'SETUSER', 'default', `-${command}`)
  const ways: [string, readonly string[], () => unknown][] = [
    [
      'is out of memory',
      ['create', 'update', 'login', 'regenerate'],
      () => server.cli('CONFIG', 'SET', 'maxmemory', '1'),
    ],
    [
      'is read-only',
      ['create', 'update', 'destroy', 'invalidateUser'],
      () => server.cli('REPLICAOF', '127.0.0.1', '1'),
    ],
    ['allows no scripts', ['create', 'update', 'destroy', 'invalidateUser'], () => refuse('evalsha')],
    ['allows no reads', ['get', 'update'], () => refuse('get')],
    ['allows no lists', ['list'], () => refuse('zrange')],
    ['breaks the connection at the first write', ['create'], () => void proxy.loseRequest('EVALSHA')],
    ['is gone', ['get', 'create', 'update', 'list', 'destroy'], () => server.kill()],
    ['is silent', ['get', 'create', 'update', 'list', 'destroy'], () => server.pause()],
  ]
  describe.each(['node-redis 6', 'ioredis 6'])('with %s', name => {
    it.each(ways)('shows no name, no data and no command where Redis %s', async (_, failing, sabotage) => {
      const { client, close } = await STANDALONE[name]!(`redis://127.0.0.1:${proxy.port}`)
      const { errors, events } = await failuresOf(new RedisStore(client), sabotage)
      expect(Object.keys(errors)).toEqual(expect.arrayContaining(failing as string[]))
      for (const value of events) expect(leaked(value, PRIVATE)).toBeNull()
      for (const error of Object.values(errors)) expect(leaked(error, [...PRIVATE, '4242424242'])).toBeNull()
      await close()
    })

    it('shows none where Redis repeats the arguments of a command that it does not know', async ({
      onTestFinished,
    }) => {
      const strict = await startRedis(['--rename-command', 'EVALSHA', ''])
      onTestFinished(strict.stop)
      const { client, close } = await STANDALONE[name]!(strict.url)
      const error = await failure(
        new RedisStore(client).deleteUser(PRIVATE[0], { minPasswordVersionUntil: T0 }, call()),
      )
      expect(error.cause).toMatchObject({ message: expect.stringMatching(/unknown command/) })
      expect(leaked(error, PRIVATE)).toBeNull()
      await close()
    })
  })
})
