// What the application has told Postgres.js of types. Nothing is connected.
import { PostgresStore } from 'coatcheck/stores/sql'
import postgres from 'postgres'
import { expect, it } from 'vitest'

it('refuses a client whose types change text, and takes others', () => {
  const text = (serialize: (value: string) => string) =>
    postgres({ types: { text: { to: 25, from: [25], serialize, parse: (value: string) => value } } })
  expect(() => new PostgresStore(text(value => `${value} `))).toThrow(/whose types change text/)
  expect(() => new PostgresStore(text(value => value.trim()))).toThrow(/whose types change text/)
  expect(new PostgresStore(text(value => value))).toBeInstanceOf(PostgresStore)
  expect(new PostgresStore(postgres({ types: { bigint: postgres.BigInt } }))).toBeInstanceOf(PostgresStore)
})
