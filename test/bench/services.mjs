// @ts-check
// Private database servers on free loopback ports, without persistence that would blur the figures, stopped at the end.
import { execFileSync, spawn } from 'node:child_process'
import { chownSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir, userInfo } from 'node:os'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { findBinary } from '../services/engine-list.mjs'
import { freePort } from '../services/port.mjs'

/** PostgreSQL and MariaDB refuse root. @param {string} name */
function account(name) {
  if (userInfo().uid !== 0) return {}
  const id = (/** @type {string} */ flag) => Number(execFileSync('id', [flag, name], { encoding: 'utf8' }))
  return { uid: id('-u'), gid: id('-g') }
}

/** @param {string} name */
function binary(name) {
  const path = findBinary(name)
  if (path === null) throw new Error(`${name} is not on PATH`)
  return path
}

/**
 * @param {string} path
 * @param {string[]} args
 * @param {import('node:child_process').SpawnOptions} options
 * @param {() => Promise<unknown>} probe
 */
async function start(path, args, options, probe) {
  const child = spawn(path, args, { stdio: ['ignore', 'ignore', 'pipe'], ...options })
  let output = ''
  child.stderr?.on('data', chunk => {
    output = (output + chunk).slice(-4000)
  })
  const kill = () => child.kill('SIGKILL')
  process.on('exit', kill)
  const ended = new Promise(resolve => child.once('exit', resolve))
  const end = Date.now() + 60_000
  for (;;) {
    try {
      await probe()
      break
    } catch (error) {
      if (child.exitCode !== null || Date.now() > end)
        throw new Error(`${path} did not start: ${output}`, { cause: error })
      await wait(50)
    }
  }
  return async (/** @type {NodeJS.Signals} */ signal = 'SIGTERM') => {
    child.kill(signal)
    await ended
    process.removeListener('exit', kill)
  }
}

/** @param {string} name @param {{ uid?: number, gid?: number }} as */
function temporaryFolder(name, as) {
  const folder = mkdtempSync(join(tmpdir(), `coatcheck-bench-${name}-`))
  if (as.uid !== undefined && as.gid !== undefined) chownSync(folder, as.uid, as.gid)
  return { folder, remove: () => rmSync(folder, { recursive: true, force: true }) }
}

export async function startRedis() {
  const { createClient } = await import('redis')
  const port = await freePort()
  const { folder, remove } = temporaryFolder('redis', {})
  const url = `redis://127.0.0.1:${port}`
  const args = ['--port', `${port}`, '--bind', '127.0.0.1', '--dir', folder, '--save', '', '--appendonly', 'no']
  const stop = await start(binary('redis-server'), args, {}, async () => {
    const client = createClient({ url, socket: { reconnectStrategy: false } })
    client.on('error', () => {})
    await client.connect()
    client.destroy()
  })
  return {
    url,
    async stop() {
      await stop('SIGKILL')
      remove()
    },
  }
}

/** @param {string[]} settings */
export async function startPostgres(...settings) {
  const { default: pg } = await import('pg')
  const as = account('postgres')
  const { folder, remove } = temporaryFolder('pg', as)
  const data = join(folder, 'data')
  execFileSync(
    binary('initdb'),
    ['-D', data, '-U', 'postgres', '-A', 'trust', '-E', 'UTF8', '--locale=C.UTF-8', '-N'],
    {
      stdio: 'pipe',
      cwd: folder,
      ...as,
    },
  )
  const port = await freePort()
  const url = `postgres://postgres@127.0.0.1:${port}/postgres`
  const all = [
    'listen_addresses=127.0.0.1',
    `unix_socket_directories=${folder}`,
    'max_connections=200',
    'shared_buffers=512MB',
    'shared_preload_libraries=pg_stat_statements',
    ...settings,
  ].flatMap(setting => ['-c', setting])
  const stop = await start(
    binary('postgres'),
    ['-D', data, '-p', `${port}`, ...all],
    { cwd: folder, ...as },
    async () => {
      const client = new pg.Client(url)
      await client.connect()
      await client.end()
    },
  )
  return {
    url,
    async stop() {
      await stop('SIGINT')
      remove()
    },
  }
}

/** @param {string[]} settings */
export async function startMariadb(...settings) {
  const { createConnection } = await import('mysql2/promise')
  const as = account('mysql')
  const { folder, remove } = temporaryFolder('my', as)
  const data = join(folder, 'data')
  execFileSync(
    binary('mariadb-install-db'),
    ['--no-defaults', `--datadir=${data}`, '--auth-root-authentication-method=normal', '--skip-test-db'],
    { stdio: 'pipe', cwd: folder, ...as },
  )
  const port = await freePort()
  const url = `mysql://root@127.0.0.1:${port}/bench`
  const all = [
    '--no-defaults',
    `--datadir=${data}`,
    `--port=${port}`,
    '--bind-address=127.0.0.1',
    `--socket=${join(folder, 'socket')}`,
    // A server that starts clears its temporary folder: it must not be another server's.
    `--tmpdir=${folder}`,
    '--max-connections=300',
    '--innodb-buffer-pool-size=512M',
    ...settings,
  ]
  const stop = await start(binary('mariadbd'), all, { cwd: folder, ...as }, async () => {
    const connection = await createConnection(url.replace('/bench', '/'))
    await connection.query('CREATE DATABASE IF NOT EXISTS bench')
    await connection.end()
  })
  return {
    url,
    async stop() {
      await stop()
      remove()
    },
  }
}
