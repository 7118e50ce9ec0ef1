// What the guarantees ask of Redis itself.
import type { Backend } from '../guarantee-kit.ts'
import type { RedisServer } from '../services/redis.ts'

const DUMP = `local all = {}
for _, key in ipairs(redis.call('KEYS', '*')) do
  local kind = redis.call('TYPE', key).ok
  if kind == 'string' then all[#all + 1] = key .. ' ' .. redis.call('GET', key)
  elseif kind == 'zset' then all[#all + 1] = key .. ' ' .. table.concat(redis.call('ZRANGE', key, 0, -1, 'WITHSCORES'), ' ')
  else error('no dump of a ' .. kind) end
end
table.sort(all)
return table.concat(all, ' ')`

const together = async <A>(servers: readonly RedisServer[], ask: (server: RedisServer) => Promise<A>) =>
  Promise.all(servers.map(ask))

/** `servers` are the masters. */
export function redisBackend(servers: readonly RedisServer[]): Required<Backend> {
  const permit = (rights: string) => together(servers, server => server.cli('ACL', 'SETUSER', 'default', rights))
  return {
    dump: async () => (await together(servers, server => server.cli('EVAL', DUMP, '0'))).join('\n'),
    async outage() {
      await permit('-@read')
      return () => permit('+@all')
    },
    async commands() {
      const stats = await together(servers, server => server.commandStats())
      return stats.reduce((sum, { get = 0, mget = 0 }) => sum + get + mget, 0)
    },
  }
}
