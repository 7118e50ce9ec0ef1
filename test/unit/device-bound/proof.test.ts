// The rules for proofs, one by one, and proofs that are spoilt at random.
import { createHmac, createPublicKey, generateKeyPairSync, sign } from 'node:crypto'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { headerText } from '../../../src/device-bound/proof.ts'
import {
  CHALLENGE,
  encode,
  jwsOf,
  newDevice,
  PAYLOAD,
  refreshProof,
  refusal,
  registered,
  registrationProof,
  rsaDevice,
  signatureOf,
  verifyRefresh,
  verifyRegistration,
} from '../../support/device-key.ts'

const device = newDevice()
const key = registered(device)
const HEADER = { alg: 'ES256', jwk: device.jwk, typ: 'dbsc+jwt' }
const REFRESH_HEADER = { alg: 'ES256', typ: 'dbsc+jwt' }
const [header, payload, signature] = registrationProof(device, CHALLENGE).split('.') as [string, string, string]

const registering = (jws: string) => refusal(verifyRegistration(jws))
const refreshing = (jws: string) => refusal(verifyRefresh(jws, key))
const atRegistration = (head: unknown, body: unknown = PAYLOAD, signer = device) =>
  registering(jwsOf(signer, head, body))
const atRefresh = (head: unknown, body: unknown = PAYLOAD, signer = device) => refreshing(jwsOf(signer, head, body))
const withKey = (jwk: unknown) => atRegistration({ ...HEADER, jwk })

describe('a proof of a browser', () => {
  it('registers a key, and refreshes with it: coordinates with leading zeros too', () => {
    expect(key).toHaveLength(86)
    expect(verifyRegistration(registrationProof(device, 'first'))).toEqual({ key, jti: 'first' })
    expect(verifyRefresh(refreshProof(device, 'second'), key)).toEqual({ key, jti: 'second' })
    for (let round = 0; round < 100; round += 1) {
      const pair = newDevice()
      expect(refusal(verifyRefresh(refreshProof(pair, CHALLENGE), registered(pair)))).toBeNull()
    }
  })

  it('may say more than it must: what is not understood is ignored', () => {
    expect(atRegistration({ ...HEADER, kid: 'x', jku: 'https://evil.example/keys' }, { ...PAYLOAD, iat: 1 })).toBeNull()
    expect(withKey({ ...device.jwk, alg: 'ES256', use: 'sig', kid: 'x' })).toBeNull()
  })

  it('of another device is refused, with the key of the one and signed by the other too', () => {
    expect(refreshing(refreshProof(newDevice(), CHALLENGE))).toBe('signature')
    expect(atRegistration(HEADER, PAYLOAD, newDevice())).toBe('signature')
  })

  it('is for registration or for refresh, never for both', () => {
    expect(refreshing(registrationProof(device, CHALLENGE))).toBe('malformed')
    expect(registering(refreshProof(device, CHALLENGE))).toBe('malformed')
  })
})

describe('the form of a proof', () => {
  const good = `${header}.${payload}.${signature}`

  it.each([
    ['nothing', ''],
    ['two parts', `${header}.${payload}`],
    ['four parts', `${good}.${signature}`],
    ['an empty header', `.${payload}.${signature}`],
    ['an empty payload, which stands elsewhere', `${header}..${signature}`],
    ['no signature', `${header}.${payload}.`],
    ['padding', `${header}=.${payload}.${signature}`],
    ['a line break at the end', `${good}\n`],
    ['base64 instead of base64url', good.replace(/.$/, '+')],
    ['the JSON form', JSON.stringify({ protected: header, payload, signature })],
    ['two in one header', `${good}, ${good}`],
    ['a million characters', 'x'.repeat(1_000_000)],
    [
      'bytes that are not UTF-8',
      `${header}.${Buffer.from('7b226a7469223a22ffc080227d', 'hex').toString('base64url')}.AA`,
    ],
  ])('%s is malformed', (_, jws) => {
    expect(registering(jws)).toBe('malformed')
  })

  it('no second text stands for the same bytes: unused bits of the last character must be zero', () => {
    // 64 bytes are 86 characters, of which the last has four bits that mean nothing.
    const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'
    const bytes = Buffer.from(signature, 'base64url')
    const twins = [...alphabet].map(last => signature.slice(0, -1) + last)
    const same = twins.filter(twin => Buffer.from(twin, 'base64url').equals(bytes))
    expect(same).toHaveLength(16)
    for (const twin of same)
      expect(registering(`${header}.${payload}.${twin}`)).toBe(twin === signature ? null : 'malformed')
  })

  it('8 KiB is the longest', () => {
    // Of a length that base64url can have, with one character more too.
    const starts = ['', 'x', 'xx', 'xxx'].map(kid => `${encode({ ...HEADER, kid })}.${payload}.`)
    const start = starts.find(({ length }) => (8192 - length) % 4 > 1)!
    expect(registering(start.padEnd(8192, 'A'))).toBe('signature')
    expect(registering(start.padEnd(8193, 'A'))).toBe('malformed')
  })

  it.each([
    ['text', 'text'],
    ['an array', '[{"jti":"x"}]'],
    ['a byte order mark', '\ufeff{"jti":"x"}'],
    ['more behind it', '{"jti":"x"}{}'],
    ['arrays a thousand deep, unclosed', '['.repeat(1000)],
  ])('a header or a payload that is %s is malformed', (_, text) => {
    expect([atRegistration(text), atRegistration(HEADER, text)]).toEqual(['malformed', 'malformed'])
  })

  it.each([{}, { jti: '' }, { jti: 1 }, { claims: PAYLOAD }, '{"__proto__":{"jti":"x"}}'])(
    'a payload of %j is malformed: it has no jti',
    claims => {
      expect([atRegistration(HEADER, claims), atRefresh(REFRESH_HEADER, claims)]).toEqual(['malformed', 'malformed'])
    },
  )

  // RFC 7515, section 4: names are unique, or the last one counts, which JSON.parse sees to.
  it('of a name that stands twice the last one counts', () => {
    const [jwk, alg] = [JSON.stringify(device.jwk), '"alg":"ES256","typ":"dbsc+jwt"']
    expect(atRegistration(`{"alg":"none",${alg},"jwk":${jwk}}`)).toBeNull()
    expect(atRegistration(`{${alg},"jwk":${jwk},"alg":"none"}`)).toBe('algorithm')
    expect(atRegistration(`{${alg},"jwk":{},"jwk":${jwk}}`)).toBeNull()
    expect(atRegistration(`{${alg},"jwk":${jwk},"jwk":{}}`)).toBe('key')
    expect(verifyRegistration(jwsOf(device, HEADER, '{"jti":"other","jti":"x"}'))).toMatchObject({ jti: 'x' })
  })
})

describe('the header of a proof', () => {
  it('is refused with any algorithm but the one that was offered, and malformed without one', () => {
    for (const alg of 'none None HS256 HS384 HS512 ES384 ES512 ES256K EdDSA PS256 RS256 RS1 es256'
      .split(' ')
      .concat(''))
      expect([alg, atRegistration({ ...HEADER, alg }), atRefresh({ ...REFRESH_HEADER, alg })]).toEqual([
        alg,
        'algorithm',
        'algorithm',
      ])
    for (const alg of [undefined, null, 1, ['ES256'], { toString: 'ES256' }])
      expect(atRegistration({ ...HEADER, alg })).toBe('malformed')
    expect(refreshing(`${encode({ ...REFRESH_HEADER, alg: 'none' })}.${payload}.AA`)).toBe('algorithm')
  })

  it('is refused with HS256 and the public key as the secret, and where another kind of key has signed well', () => {
    const pem = createPublicKey({ key: device.jwk, format: 'jwk' }).export({ type: 'spki', format: 'pem' })
    const signed = `${encode({ alg: 'HS256', typ: 'dbsc+jwt' })}.${payload}`
    expect(refreshing(`${signed}.${createHmac('sha256', pem).update(signed).digest('base64url')}`)).toBe('algorithm')
    const rsa = rsaDevice()
    expect(registering(registrationProof(rsa, CHALLENGE))).toBe('algorithm')
    expect(refreshing(refreshProof(rsa, CHALLENGE))).toBe('algorithm')
    // A key of the one kind under the name of the other.
    expect(withKey(rsa.jwk)).toBe('key')
  })

  it('is malformed with another typ, with crit, with a key at a refresh, or with members that are inherited', () => {
    for (const typ of [undefined, 'JWT', 'DBSC+JWT', 'application/dbsc+jwt', 'dbsc+jwt ', '', null, ['dbsc+jwt'], 1])
      expect([atRegistration({ ...HEADER, typ }), atRefresh({ ...REFRESH_HEADER, typ })]).not.toContain(null)
    for (const crit of [['b64'], [], null, 'exp', false])
      expect([atRegistration({ ...HEADER, crit }), atRefresh({ ...REFRESH_HEADER, crit })]).not.toContain(null)
    for (const jwk of [device.jwk, newDevice().jwk, null, {}, ''])
      expect(atRefresh({ ...REFRESH_HEADER, jwk })).toBe('malformed')
    const thief = newDevice()
    expect(atRefresh({ ...REFRESH_HEADER, jwk: thief.jwk }, PAYLOAD, thief)).toBe('malformed')
    const { jwk, ...rest } = HEADER
    expect(atRegistration(`{"__proto__":${JSON.stringify(HEADER)}}`)).toBe('malformed')
    const inherited = `{"__proto__":{"jwk":${JSON.stringify(jwk)}},${JSON.stringify(rest).slice(1)}`
    expect(atRegistration(inherited)).toBe('malformed')
  })
})

describe('the key of a registration', () => {
  const x = Buffer.from(device.jwk.x as string, 'base64url')
  const ec = (namedCurve: string) => generateKeyPairSync('ec', { namedCurve }).publicKey.export({ format: 'jwk' })

  it.each<[string, unknown]>([
    ['a list', [device.jwk]],
    ['empty', {}],
    ['without a kind', { ...device.jwk, kty: undefined }],
    ['symmetric', { kty: 'oct', k: 'AAAA' }],
    ['on P-384 by its name', { ...device.jwk, crv: 'P-384' }],
    ['on secp256k1', ec('secp256k1')],
    ['for Ed25519', generateKeyPairSync('ed25519').publicKey.export({ format: 'jwk' })],
    ['private', device.privateKey.export({ format: 'jwk' })],
    ...['d', 'p', 'q', 'dp', 'dq', 'qi', 'oth', 'k'].map(
      name => [`secret by ${name}`, { ...device.jwk, [name]: '' }] as [string, unknown],
    ),
    ['for encryption', { ...device.jwk, use: 'enc' }],
    ['for another algorithm', { ...device.jwk, alg: 'ES384' }],
    ['without x', { ...device.jwk, x: undefined }],
    ['without y', { ...device.jwk, y: undefined }],
    ['with an x of 31 bytes', { ...device.jwk, x: x.subarray(1).toString('base64url') }],
    ['with an x of 33 bytes', { ...device.jwk, x: Buffer.concat([Buffer.alloc(1), x]).toString('base64url') }],
    ['with an x in base64 with padding', { ...device.jwk, x: `${device.jwk.x}=` }],
    ['with the point at infinity', { ...device.jwk, x: 'A'.repeat(43), y: 'A'.repeat(43) }],
    ['beside the curve', { ...device.jwk, y: newDevice().jwk.y }],
    ['with coordinates beyond the field', { ...device.jwk, x: Buffer.alloc(32, 0xff).toString('base64url') }],
  ])('is refused if it is %s', (_, jwk) => {
    expect(withKey(jwk)).toBe('key')
  })
})

describe('the signature of a proof', () => {
  const signed = `${encode(REFRESH_HEADER)}.${encode(PAYLOAD)}`
  const right = signatureOf(device, signed)
  const [r, s] = [right.subarray(0, 32), right.subarray(32)]
  const [zero, byte] = [Buffer.alloc(32), Buffer.alloc(1)]
  const of = (...parts: Buffer[]) => refreshing(`${signed}.${Buffer.concat(parts).toString('base64url')}`)

  it.each([
    ['both are zero', [zero, zero]],
    ['r and s are swapped', [s, r]],
    ['it is DER', [sign('sha256', Buffer.from(signed), device.privateKey)]],
    ['it has 63 bytes', [right.subarray(1)]],
    ['it has 65 bytes', [right, byte]],
    ['it is of SHA-384', [sign('sha384', Buffer.from(signed), { key: device.privateKey, dsaEncoding: 'ieee-p1363' })]],
  ])('is wrong if %s', (_, parts) => {
    expect(of(...parts)).toBe('signature')
  })

  it('covers the header and the payload as they came', () => {
    expect(of(right)).toBeNull()
    const end = right.toString('base64url')
    expect(refreshing(`${encode({ typ: 'dbsc+jwt', alg: 'ES256' })}.${encode(PAYLOAD)}.${end}`)).toBe('signature')
    expect(refreshing(`${encode(REFRESH_HEADER)}.${encode({ jti: 'other' })}.${end}`)).toBe('signature')
  })
})

it('characters that are changed, put in or taken out never verify and never throw', () => {
  const proof = registrationProof(device, CHALLENGE)
  const text = fc.oneof(fc.string({ maxLength: 3 }), fc.constantFrom('.', '=', 'A', '{}', 'AA', '..'))
  const edits = fc.array(fc.record({ at: fc.nat(1200), drop: fc.nat(3), text }), { minLength: 1, maxLength: 3 })
  const spoils = fc.property(edits, changes => {
    let changed = proof
    for (const { at, drop, text } of changes) {
      const place = at % (changed.length + 1)
      changed = changed.slice(0, place) + text + changed.slice(place + drop)
    }
    expect(registering(changed) === null).toBe(changed === proof)
  })
  fc.assert(spoils, { numRuns: 300 })
})

it('the text of a header comes with quotation marks or without', () => {
  for (const [given, text] of [
    ['abc.def.ghi', 'abc.def.ghi'],
    ['"abc.def.ghi"', 'abc.def.ghi'],
    ['"abc";a=1', 'abc'],
    ['"abc" ; a="b"; c', 'abc'],
    ['""', ''],
    ['', ''],
    ...['"abc', '"abc"def', '"abc", "def"', '"a\\"bc"', '"a\u00e4"', '"'].map(wrong => [wrong, null] as const),
    [null, undefined],
    [undefined, undefined],
  ] as const)
    expect([given, headerText(given)]).toEqual([given, text])
})
