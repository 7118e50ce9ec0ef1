// Releases of servers that are not here. What the command finds at those that are: doctor.engines.test.ts.
import { expect, it } from 'vitest'
import { judgeVersion } from '../../src/command/doctor.ts'

it.each<[string, string, string | undefined]>([
  ['PostgreSQL', '15.14 (Debian 15.14-0+deb12u1)', undefined],
  ['PostgreSQL', '11.22', 'update it: coatcheck needs PostgreSQL 12 or later'],
  ['MySQL', '5.7.44-log', 'update it: coatcheck needs MySQL 8 or later'],
  ['MariaDB', '10.11.14-MariaDB-0+deb12u2', undefined],
  ['MariaDB', '10.4.34-MariaDB', 'update it: coatcheck needs MariaDB 10.5 or later'],
  ['Redis', '6.0.16', 'update it: coatcheck needs Redis 6.2 or later'],
  ['Redis', '7.0.15', undefined],
  ['Valkey', '8.1.1', undefined],
])('judges the release of a server: %s %s', (product, said, todo) => {
  expect(judgeVersion(product, said)).toEqual({ text: `${product} ${said}`, ...(todo && { todo }) })
})
