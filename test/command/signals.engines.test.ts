// The built command gets a signal, or its server says nothing.
import { connect, createServer } from 'node:net'
import { SessionManager } from 'coatcheck'
import { PostgresStore } from 'coatcheck/stores/postgres'
import type pg from 'pg'
import { expect, it, vi } from 'vitest'
import { commandOn, runCommand, startCoatcheck } from '../support/command.ts'
import { portOf } from '../support/listening.ts'
import { build } from '../support/scripts/build.mjs'
import { describeEngine } from '../support/services/engines.ts'
import { startPostgres } from '../support/services/postgres.ts'
import { until } from '../support/services/process.ts'
import { started } from '../support/started.ts'

// Each command is a process of its own.
vi.setConfig({ testTimeout: 120_000 })

/** A way to a server that passes on so many of its answers, and then nothing. */
async function fallsSilent(port: number, answers: number) {
  let passed = 0
  const proxy = createServer(client => {
    const upstream = connect(port, '127.0.0.1')
    for (const socket of [client, upstream]) socket.on('error', () => {})
    client.on('close', () => upstream.destroy())
    client.pipe(upstream)
    upstream.on('data', chunk => {
      passed += 1
      if (passed <= answers) client.write(chunk)
    })
  })
  return { port: await portOf(proxy), close: () => proxy.close() }
}

describeEngine('postgresql', 'a signal', () => {
  let admin: pg.Pool
  const own = started(async () => {
    await build()
    const server = await startPostgres()
    admin = server.pool()
    await new PostgresStore(admin).migrate()
    return server
  })

  it.each([
    ['SIGINT', 130],
    ['SIGTERM', 143],
  ] as const)('%s ends it at once with %d, and a second run does the rest', async (signal, code) => {
    const sessions = new SessionManager({ store: new PostgresStore(admin), sweepInterval: false, storeTimeout: '1m' })
    for (const id of [1, 2, 3]) await sessions.create({ user: { id, name: 'ada' } })
    const holder = await admin.connect()
    await holder.query('BEGIN; LOCK TABLE coatcheck_sessions')
    const running = startCoatcheck(['invalidate-all', '--yes', '--timeout', '1h'], {
      COATCHECK_STORE_URL: own().url(),
    })
    await until('the command waiting for the lock', async () => {
      const { rows } = await admin.query('SELECT count(*)::int AS waiting FROM pg_locks WHERE NOT granted')
      expect(rows[0].waiting).toBeGreaterThan(0)
    })
    await running.stop(signal)
    await holder.query('ROLLBACK')
    holder.release()
    expect([running.child.exitCode, running.output()]).toEqual([code, ''])
    const { json } = commandOn(own().url())
    expect(await json('count')).toEqual([{ count: 3 }])
    expect(await json('invalidate-all', '--yes')).toEqual([{ ended: 3 }])
    expect(await json('count')).toEqual([{ count: 0 }])
  })

  it('is not needed where a server says nothing any more after a while: the last line names the question', async () => {
    const after = async (command: string, answers: number) => {
      const proxy = await fallsSilent(Number(new URL(own().url()).port), answers)
      const env = {
        COATCHECK_STORE_URL: own()
          .url()
          .replace(/:\d+\//, `:${proxy.port}/`),
      }
      const { code, err } = await runCommand([command, '--timeout', '2s'], { env })
      proxy.close()
      return [code, err]
    }
    const said = [after('doctor', 1), after('doctor', 2), after('count', 1), after('count', 4)]
    expect(await Promise.all(said)).toEqual([
      [1, expect.stringMatching(/: 1 ok, 1 WRONG \(version\), and the rest was not asked\n$/)],
      [1, expect.stringMatching(/: 3 ok, 1 WRONG \(tables\), and the rest was not asked\n$/)],
      [1, expect.stringMatching(/: no answer within 2000 ms \(tables\)\n$/)],
      [1, expect.stringMatching(/: [^\n]*\b(?:count|scan)\b[^\n]*\n$/)],
    ])
  })

  it('is not needed where a server accepts connections and never answers', async () => {
    const silent = createServer(socket => socket.on('error', () => {}))
    const port = await portOf(silent)
    for (const scheme of ['postgres', 'mysql', 'redis', 'redis+cluster']) {
      const url = `${scheme}://ada:hunter2@127.0.0.1:${port}${scheme.startsWith('redis') ? '' : '/x'}`
      const { code, err } = await runCommand(['list', '42', '--timeout', '300ms'], {
        env: { COATCHECK_STORE_URL: url },
      })
      expect([code, err]).toEqual([1, expect.stringMatching(/^coatcheck: [^\n]*127\.0\.0\.1[^\n]*\n$/)])
      expect(err).not.toContain('hunter2')
    }
    silent.close()
  })
})
