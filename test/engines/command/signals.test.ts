// The built command is interrupted, or its server says nothing.
import { once } from 'node:events'
import { createServer } from 'node:net'
import { SessionManager } from 'coatcheck'
import { PostgresStore } from 'coatcheck/stores/postgres'
import type pg from 'pg'
import { afterAll, beforeAll, expect, it, vi } from 'vitest'
import { coatcheck, commandOn, startCoatcheck } from '../../support/command.ts'
import { build } from '../../support/scripts/build.mjs'
import { describeEngine } from '../../support/services/engines.ts'
import { type PostgresServer, startPostgres } from '../../support/services/postgres.ts'
import { until } from '../../support/services/process.ts'

// Each command is a process of its own.
vi.setConfig({ testTimeout: 120_000 })

describeEngine('postgresql', 'a signal', () => {
  let server: PostgresServer
  let admin: pg.Pool
  beforeAll(async () => {
    await build()
    server = await startPostgres()
    admin = server.pool()
    await new PostgresStore(admin).migrate()
  }, 240_000)
  afterAll(() => server?.stop())

  /** Sessions of as many users, begun at this moment. */
  async function seed(count: number, now: number) {
    const store = new PostgresStore(admin)
    const sessions = new SessionManager({ store, sweepInterval: false, storeTimeout: '1m', now: () => now })
    await sessions.create({ user: { id: 1, name: 'ada' } })
    await admin.query(
      `INSERT INTO coatcheck_sessions
         SELECT (jsonb_populate_record(s, jsonb_build_object('id', lpad(n::text, 46, 'k'), 'user_id', n))).*
           FROM coatcheck_sessions s, generate_series(2, $1::int) n`,
      [count],
    )
  }

  /** Another connection's lock on the sessions, and the command waiting for it. */
  async function waiting(...args: string[]) {
    const holder = await admin.connect()
    await holder.query('BEGIN')
    await holder.query('LOCK TABLE coatcheck_sessions IN ACCESS EXCLUSIVE MODE')
    const running = startCoatcheck(args, { COATCHECK_STORE_URL: server.url() })
    await until('the command waiting for the lock', async () => {
      const { rows } = await admin.query('SELECT count(*)::int AS waiting FROM pg_locks WHERE NOT granted')
      expect(rows[0].waiting).toBeGreaterThan(0)
    })
    const release = async () => {
      await holder.query('ROLLBACK')
      holder.release()
    }
    const interrupt = async (signal: NodeJS.Signals) => {
      running.child.kill(signal)
      await until('the command saying so', () => expect(running.output()).toContain('Interrupted'))
    }
    return { running, release, interrupt }
  }

  it.each([
    ['SIGINT', 130],
    ['SIGTERM', 143],
  ] as const)('%s lets the call under way finish, says how far it came, and ends with %d', async (signal, code) => {
    await seed(1005, Date.now() - 86_400_000)
    const { running, release, interrupt } = await waiting('sweep', '--json')
    await interrupt(signal)
    await release()
    await until('the end', () => expect(running.ended()).toBe(true))
    expect(running.child.exitCode).toBe(code)
    const { removed } = JSON.parse(/^\{.*\}$/m.exec(running.output())![0])
    const left = await admin.query('SELECT count(*)::int AS left FROM coatcheck_sessions')
    expect(removed).toBeGreaterThan(0)
    expect([running.output(), left.rows[0].left > 0]).toEqual([expect.stringContaining('"interrupted":true'), true])
    expect((await commandOn(server.url()).json('sweep'))[0].removed).toBeGreaterThan(0)
    expect((await admin.query('SELECT count(*)::int AS left FROM coatcheck_sessions')).rows[0].left).toBe(0)
  })

  it('stops invalidate-all after the page under way, and a second run does the rest', async () => {
    await seed(1200, Date.now())
    const { running, release, interrupt } = await waiting('invalidate-all', '--yes', '--json')
    await interrupt('SIGINT')
    await release()
    await until('the end', () => expect(running.ended()).toBe(true))
    expect(running.child.exitCode).toBe(130)
    const { ended, interrupted } = JSON.parse(/^\{.*\}$/m.exec(running.output())![0])
    expect([ended > 0, ended < 1200, interrupted]).toEqual([true, true, true])
    expect(await commandOn(server.url()).json('invalidate-all', '--yes')).toEqual([
      { ended: 1200 - ended, interrupted: false },
    ])
    expect(await commandOn(server.url()).json('count')).toEqual([{ count: 0 }])
  })

  it('that comes a second time ends it at once', async () => {
    const { running, release, interrupt } = await waiting('sweep', '--timeout', '1h')
    try {
      await interrupt('SIGINT')
      await until('the end', () => {
        running.child.kill('SIGINT')
        expect(running.ended()).toBe(true)
      })
      expect(running.child.exitCode).toBe(130)
    } finally {
      await release()
    }
  })

  it('does not make a call that succeeds an interrupted one', async () => {
    const { running, release, interrupt } = await waiting('invalidate-user', '42')
    await interrupt('SIGINT')
    await release()
    await until('the end', () => expect(running.ended()).toBe(true))
    expect([running.child.exitCode, running.output()]).toEqual([
      0,
      expect.stringContaining('0 sessions of user 42 ended'),
    ])
  })

  it('before anything was begun ends it at once', async () => {
    // Accepts connections, and never says a word.
    const silent = createServer(socket => socket.on('error', () => {}))
    await new Promise<void>(resolve => silent.listen(0, '127.0.0.1', resolve))
    const connected = once(silent, 'connection')
    const { port } = silent.address() as { port: number }
    const running = startCoatcheck(['sweep'], { COATCHECK_STORE_URL: `postgres://ada:hunter2@127.0.0.1:${port}/x` })
    await connected
    await running.stop('SIGINT')
    expect([running.child.exitCode, running.output()]).toEqual([130, ''])
    silent.close()
  })

  it('is not needed where a server accepts connections and never answers', async () => {
    const silent = createServer(socket => socket.on('error', () => {}))
    await new Promise<void>(resolve => silent.listen(0, '127.0.0.1', resolve))
    const { port } = silent.address() as { port: number }
    for (const scheme of ['postgres', 'mysql', 'redis', 'redis+cluster']) {
      const url = `${scheme}://ada:hunter2@127.0.0.1:${port}${scheme.startsWith('redis') ? '' : '/x'}`
      const { code, err } = await coatcheck(['list', '42', '--timeout', '300ms'], { env: { COATCHECK_STORE_URL: url } })
      expect([code, err]).toEqual([1, expect.stringMatching(/^coatcheck: [^\n]*127\.0\.0\.1[^\n]*\n$/)])
      expect(err).not.toContain('hunter2')
    }
    silent.close()
  })
})
