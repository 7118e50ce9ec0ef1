// The warning of a store over Postgres.js: once in a process.
import { once } from 'node:events'
import { PostgresStore } from 'coatcheck/stores/postgres'
import postgres from 'postgres'
import { expect, it, onTestFinished } from 'vitest'

it('Postgres.js without fetch_types: false is warned of, once', async () => {
  const warnings: (Error & { code?: string })[] = []
  const note = (warning: Error) => void warnings.push(warning)
  process.on('warning', note)
  onTestFinished(() => void process.off('warning', note))
  new PostgresStore(postgres({ fetch_types: false }))
  for (let times = 0; times < 2; times += 1) new PostgresStore(postgres())
  await once(process, 'warning')
  await new Promise(resolve => setImmediate(resolve))
  expect(warnings.map(({ code }) => code)).toEqual(['COATCHECK_FETCH_TYPES'])
  expect(warnings[0]!.message).toContain('`fetch_types: false`')
})
