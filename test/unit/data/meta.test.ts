import { expect, it } from 'vitest'
import { packMeta, unpackMeta } from '../../../src/data/meta.ts'

it('what is kept beside the data, and the data, come back as they were, whatever text a codec makes', () => {
  const csrf = 'Zk1vX0bq7TnE-Zk1vX0bq7TnE_Zk1vX0bq7TnEabcde'
  const newIds = { count: 999, since: 864e13 }
  for (const meta of [
    { verifiedAt: null },
    { verifiedAt: 864e13 },
    { csrf, idle: 1 },
    { verifiedAt: 0, csrf, idle: 1, firstKey: `aZ${csrf}_`, newIds },
  ])
    for (const text of ['{"a":1}', '', '@', '@v1@{}', 'v1i', '\ud800'])
      expect(unpackMeta(packMeta(meta, text))).toEqual({ meta, text })
})

it.each(['@', '@@', '@@{}', '@v1@{}', '@x'])(
  'a text of a codec that looks like such fields comes back as it was: %s',
  text => {
    expect(unpackMeta(packMeta({}, text))).toEqual({ meta: {}, text })
  },
)

it('data of a session with nothing beside it is stored as the codec wrote it', () => {
  for (const json of ['{}', '{"a":"@"}', '[1]'])
    expect([packMeta({}, json), unpackMeta(json).text]).toEqual([json, json])
})

it('what is broken is data that cannot be read, of a session that is not fresh', () => {
  for (const broken of [
    '@',
    '@v',
    '@v@{}',
    '@vx@{}',
    '@v--@{}',
    '@x1@{}',
    '@v1{}',
    '@v99999999999999999@{}',
    '@v8640000000000001@{}',
    '@c@{}',
    '@i@{}',
    '@ix@{}',
    '@i1v1@{}',
    '@n@{}',
    '@n1@{}',
    '@nt1@{}',
    '@n1000t1@{}',
    '@t1n1@{}',
    '@i99999999999999@{}',
    `@c${'a'.repeat(42)}@{}`,
  ])
    expect(unpackMeta(broken)).toEqual({ meta: { verifiedAt: null }, text: broken })
})
