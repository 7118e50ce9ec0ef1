// What the application has told Postgres.js of types. Nothing is connected.
import { PostgresStore } from 'coatcheck/stores/postgres'
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

it('refuses one whose types change the numbers that it is given, where the store sends such numbers', () => {
  const of = (type: number, serialize: (value: any) => any) =>
    postgres({ types: { some: { to: type, from: [type], serialize, parse: (value: string) => value } } })
  for (const [type, serialize] of [
    [20, value => value],
    [20, value => value.epochMilliseconds],
    [1009, value => JSON.stringify(value)],
  ] as [number, (value: any) => any][])
    expect(() => new PostgresStore(of(type, serialize)), String(serialize)).toThrow(
      /whose types change text or numbers/,
    )
  expect(new PostgresStore(of(20, String))).toBeInstanceOf(PostgresStore)
  // User IDs are text: what becomes of decimals does not matter.
  expect(new PostgresStore(of(1700, value => value.toFixed(2)))).toBeInstanceOf(PostgresStore)
})
