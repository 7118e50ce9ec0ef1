// @ts-check
// Which tests are asked about a mistake in which room. In-process tests only, where no engine is named: each mistake runs
// all tests that reach its line, so what takes seconds, and searches what quicker tests show too, is left out.

/**
 * @typedef {object} Room
 * @property {readonly string[]} tests folders and files of test/
 * @property {number} aim the least share of mistakes that must be noticed, in percent
 * @property {boolean} [needsEngines] it runs with servers, and only when it is named
 */

/**
 * Tests that are left out: they start processes or compilers, look at the globals or at warnings of the process, which
 * the tests of a room share, search for long, or measure: sources with mistakes in them are slow.
 */
export const LEFT_OUT = [
  'test/import/engines.test.ts',
  'test/import/live-services.test.ts',
  'test/import/schedules.test.ts',
  'test/device-bound/engines.test.ts',
  'test/visits/cookie-time.test.ts',
  'test/visits/frameworks.test.ts',
  'test/visits/garbage.test.ts',
  'test/visits/lost-cookies.test.ts',
  'test/visits/nginx.test.ts',
  'test/visits/parallel.test.ts',
  'test/express-session/types.test.ts',
  'test/guarantees/servers.test.ts',
  'test/manager/module-level.test.ts',
  'test/manager/remember-model.test.ts',
  'test/stores/memory/after-a-peak.test.ts',
  'test/stores/memory/growth.test.ts',
  'test/stores/memory/process.test.ts',
  'test/stores/memory/walk-at-growth.test.ts',
]

const MEMORY = 'test/guarantees/memory.test.ts'

/** @type {Readonly<Record<string, Room>>} */
export const ROOMS = {
  'src/text': {
    tests: [
      'test/text',
      'test/manager/options.test.ts',
      'test/visits/bad-input.test.ts',
      'test/express-session/options.test.ts',
    ],
    aim: 92,
  },
  'src/contract': { tests: ['test/contract', 'test/manager/refusals.test.ts', 'test/manager/copies.test.ts'], aim: 92 },
  'src/data': { tests: ['test/data', 'test/manager/manager.test.ts', 'test/manager/options.test.ts'], aim: 92 },
  'src/session': {
    tests: [
      'test/session',
      'test/manager/manager.test.ts',
      'test/manager/lifetimes.test.ts',
      'test/manager/options.test.ts',
      'test/manager/operations.test.ts',
      'test/manager/secrets.test.ts',
      'test/visits/csrf.test.ts',
    ],
    aim: 92,
  },
  'src/guard': {
    tests: [
      'test/guard',
      'test/manager/manager.test.ts',
      'test/manager/options.test.ts',
      'test/manager/operations.test.ts',
      'test/manager/sweeper.test.ts',
    ],
    aim: 92,
  },
  'src/time': { tests: ['test/time', 'test/guard'], aim: 92 },
  'src/manager': { tests: ['test/manager', 'test/session', MEMORY, 'test/visits/visit.test.ts'], aim: 92 },
  'src/visits': {
    tests: [
      'test/visits',
      'test/import/adopt.test.ts',
      'test/import/taking.test.ts',
      'test/device-bound/looks.test.ts',
      'test/manager/callbacks.test.ts',
    ],
    aim: 92,
  },
  'src/import': { tests: ['test/import'], aim: 92 },
  'src/device-bound': { tests: ['test/device-bound'], aim: 92 },
  'src/express-session': { tests: ['test/express-session'], aim: 92 },
  'stores/memory': { tests: ['test/stores/memory', MEMORY], aim: 92 },
  'stores/shared': { tests: ['test/stores/shared'], aim: 92 },
  'stores/redis': {
    tests: [
      'test/stores/redis/format.test.ts',
      'test/stores/redis/keys.test.ts',
      'test/stores/redis/refusals.test.ts',
      'test/stores/redis/eviction.test.ts',
      'test/stores/redis/commands.test.ts',
      'test/stores/redis/replicas.test.ts',
      'test/stores/redis/links.test.ts',
      'test/stores/redis/glide-link.test.ts',
      'test/stores/redis/verbs.test.ts',
      'test/stores/redis/begin-and-replace.test.ts',
      'test/stores/redis/of-one-user.test.ts',
      'test/stores/redis/walk.test.ts',
      'test/stores/redis/bad-input.test.ts',
      'test/stores/redis/index.test.ts',
      'test/stores/redis/listing.test.ts',
      'test/stores/redis/scan.test.ts',
      'test/stores/redis/outage.test.ts',
      'test/stores/redis/lost-replies.test.ts',
      'test/stores/redis/shared-reads.test.ts',
      'test/stores/redis/conformance/standalone.test.ts',
      'test/stores/redis/conformance/cluster.test.ts',
    ],
    aim: 85,
    needsEngines: true,
  },
  'stores/sql': {
    tests: [
      'test/stores/sql/causes.test.ts',
      'test/stores/sql/clocks.test.ts',
      'test/stores/sql/connections.test.ts',
      'test/stores/sql/lending.test.ts',
      'test/stores/sql/options.test.ts',
      'test/stores/sql/retry.test.ts',
      'test/stores/sql/rows.test.ts',
      'test/stores/sql/statement.test.ts',
      'test/stores/sql/server-store.test.ts',
      'test/stores/sql/store.test.ts',
      'test/stores/sql/tables.test.ts',
      'test/stores/sql/user.test.ts',
      'test/stores/sql/verdict.test.ts',
      'test/stores/sql/packed.test.ts',
      'test/stores/sql/mysql',
      'test/stores/sql/postgres',
      'test/stores/sql/bad-input.test.ts',
      'test/stores/sql/statements.test.ts',
      'test/stores/sql/exact.test.ts',
      'test/stores/sql/limits.test.ts',
      'test/stores/sql/migrate.test.ts',
      'test/stores/sql/sweep.test.ts',
      'test/stores/sql/sweep-pace.test.ts',
      'test/stores/sql/walking.test.ts',
      'test/stores/sql/shared-reads.test.ts',
      'test/stores/sql/outage.test.ts',
      'test/stores/sql/remote-sqlite',
      'test/stores/sql/sqlite',
      'test/stores/sql/conformance/sqlite.test.ts',
      'test/stores/sql/conformance/postgres.test.ts',
      'test/stores/sql/conformance/mariadb.test.ts',
    ],
    aim: 85,
    needsEngines: true,
  },
}
