import { createHmac, createPublicKey, generateKeyPairSync, sign, verify } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { headerText } from '../../../src/device-bound/proof.ts'
import {
  encode,
  jwsOf,
  newDevice,
  refreshProof,
  registrationProof,
  rsaDevice,
  signatureOf,
} from '../../support/device-key.ts'
import {
  CHALLENGE,
  PAYLOAD,
  refusal,
  registered,
  verifyRefresh,
  verifyRegistration,
} from '../../support/device-proofs.ts'

const device = newDevice()
const HEADER = { alg: 'ES256', jwk: device.jwk, typ: 'dbsc+jwt' }
const REFRESH_HEADER = { alg: 'ES256', typ: 'dbsc+jwt' }

const atRegistration = (header: unknown, payload: unknown = PAYLOAD, signer = device) =>
  refusal(verifyRegistration(jwsOf(signer, header, payload)))
const atRefresh = (header: unknown, payload: unknown = PAYLOAD, signer = device) =>
  refusal(verifyRefresh(jwsOf(signer, header, payload), registered(device)))

describe('a proof of a browser', () => {
  it('registers a key, and refreshes with it', () => {
    const key = registered(device)
    expect(key).toHaveLength(86)
    expect(verifyRegistration(registrationProof(device, 'first'))).toEqual({ key, jti: 'first' })
    expect(verifyRefresh(refreshProof(device, 'second'), key)).toEqual({ key, jti: 'second' })
  })

  it('verifies for every key: coordinates with leading zeros too', () => {
    for (let round = 0; round < 100; round += 1) {
      const pair = newDevice()
      expect(refusal(verifyRefresh(refreshProof(pair, CHALLENGE), registered(pair)))).toBeNull()
    }
  })

  it('may say more than it must: what is not understood is ignored', () => {
    expect(atRegistration({ ...HEADER, kid: 'x', jku: 'https://evil.example/keys' }, { ...PAYLOAD, iat: 1 })).toBeNull()
    expect(atRegistration({ ...HEADER, jwk: { ...device.jwk, alg: 'ES256', use: 'sig', kid: 'x' } })).toBeNull()
  })

  it('of another device is refused', () => {
    expect(refusal(verifyRefresh(refreshProof(newDevice(), CHALLENGE), registered(device)))).toBe('signature')
    // With the key of the one, signed by the other.
    expect(atRegistration(HEADER, PAYLOAD, newDevice())).toBe('signature')
  })

  it('is for registration or for refresh, never for both', () => {
    expect(refusal(verifyRefresh(registrationProof(device, CHALLENGE), registered(device)))).toBe('malformed')
    expect(refusal(verifyRegistration(refreshProof(device, CHALLENGE)))).toBe('malformed')
  })
})

describe('the form of a proof', () => {
  const good = registrationProof(device, CHALLENGE)
  const [header, payload, signature] = good.split('.') as [string, string, string]
  const of = (jws: string) => refusal(verifyRegistration(jws))

  it.each([
    ['nothing', ''],
    ['one part', header],
    ['two parts', `${header}.${payload}`],
    ['four parts', `${good}.${signature}`],
    ['four parts, the last one empty', `${good}.`],
    ['an empty header', `.${payload}.${signature}`],
    ['an empty payload, which stands elsewhere', `${header}..${signature}`],
    ['no signature', `${header}.${payload}.`],
    ['padding', `${header}=.${payload}.${signature}`],
    ['padding of the signature', `${good}==`],
    ['white space', `${header} .${payload}.${signature}`],
    ['a line break at the end', `${good}\n`],
    ['base64 instead of base64url', `${good.replace(/.$/, '+')}`],
    ['the JSON form', JSON.stringify({ protected: header, payload, signature })],
    ['two in one header', `${good}, ${good}`],
    ['a null byte', `${good}\0`],
  ])('%s is malformed', (_, jws) => {
    expect(of(jws)).toBe('malformed')
  })

  it('no second text stands for the same bytes: unused bits of the last character must be zero', () => {
    // 64 bytes are 86 characters, of which the last has four bits that mean nothing.
    const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'
    const bytes = Buffer.from(signature, 'base64url')
    const twins = [...alphabet].map(last => signature.slice(0, -1) + last)
    const same = twins.filter(twin => Buffer.from(twin, 'base64url').equals(bytes))
    expect(same).toHaveLength(16)
    for (const twin of same) expect(of(`${header}.${payload}.${twin}`)).toBe(twin === signature ? null : 'malformed')
  })

  it('8 KiB is the longest', () => {
    const filled = (length: number) => {
      for (const kid of ['', 'x', 'xx', 'xxx']) {
        const bytes = Math.floor(((length - encode({ ...HEADER, kid }).length - 88) * 3) / 4)
        const fill = 'x'.repeat(bytes - JSON.stringify({ ...PAYLOAD, fill: '' }).length)
        const jws = jwsOf(device, { ...HEADER, kid }, { ...PAYLOAD, fill })
        if (jws.length === length) return jws
      }
      throw new Error(`no proof has ${length} characters`)
    }
    expect(of(filled(8192))).toBeNull()
    expect(of(filled(8193))).toBe('malformed')
    expect(of('x'.repeat(1_000_000))).toBe('malformed')
    expect(of('.'.repeat(8192))).toBe('malformed')
  })

  it.each([
    ['text', 'text'],
    ['a number', '1'],
    ['null', 'null'],
    ['an array', '[{"jti":"x"}]'],
    ['a string', '"jti"'],
    ['a byte order mark', '\ufeff{"jti":"x"}'],
    ['more behind it', '{"jti":"x"}{}'],
    ['a comment', '{"jti":"x"/**/}'],
    ['a trailing comma', '{"jti":"x",}'],
    ['single quotes', "{'jti':'x'}"],
    ['arrays a thousand deep, unclosed', '['.repeat(1000)],
  ])('a header or a payload that is %s is malformed', (_, text) => {
    expect(atRegistration(text)).toBe('malformed')
    expect(atRegistration(HEADER, text)).toBe('malformed')
  })

  it('bytes that are not UTF-8 are malformed', () => {
    const bytes = Buffer.concat([Buffer.from('{"jti":"'), Buffer.from([0xff, 0xc0, 0x80]), Buffer.from('"}')])
    const signed = `${header}.${bytes.toString('base64url')}`
    expect(of(`${signed}.${signatureOf(device, signed).toString('base64url')}`)).toBe('malformed')
  })

  it.each([
    ['no jti', {}],
    ['an empty jti', { jti: '' }],
    ['a number as jti', { jti: 1 }],
    ['a list as jti', { jti: [CHALLENGE] }],
    ['null as jti', { jti: null }],
    ['a jti inside', { claims: { jti: CHALLENGE } }],
    ['a jti that is inherited', '{"__proto__":{"jti":"x"}}'],
  ])('%s is malformed', (_, claims) => {
    expect(atRegistration(HEADER, claims)).toBe('malformed')
    expect(atRefresh(REFRESH_HEADER, claims)).toBe('malformed')
  })
})

// RFC 7515, section 4: names are unique, or the last one counts, which JSON.parse sees to.
describe('of a name that stands twice the last one counts', () => {
  const jwk = JSON.stringify(device.jwk)
  const alg = '"alg":"ES256","typ":"dbsc+jwt"'

  it.each([
    ['alg', `{"alg":"none",${alg},"jwk":${jwk}}`, null],
    ['alg, the other way around', `{${alg},"jwk":${jwk},"alg":"none"}`, 'algorithm'],
    ['jwk', `{${alg},"jwk":{},"jwk":${jwk}}`, null],
    ['jwk, the other way around', `{${alg},"jwk":${jwk},"jwk":{}}`, 'key'],
  ])('%s', (_, header, result) => {
    expect(atRegistration(header)).toBe(result)
  })

  it('in the payload too', () => {
    const jws = jwsOf(device, HEADER, `{"jti":"other","jti":"${CHALLENGE}"}`)
    expect(verifyRegistration(jws)).toMatchObject({ jti: CHALLENGE })
  })
})

describe('the algorithm of a proof', () => {
  it.each([
    'none',
    'None',
    'HS256',
    'HS384',
    'HS512',
    'ES384',
    'ES512',
    'ES256K',
    'EdDSA',
    'PS256',
    'RS256',
    'RS1',
    'es256',
    '',
  ])('%o is refused', alg => {
    expect(atRegistration({ ...HEADER, alg })).toBe('algorithm')
    expect(atRefresh({ ...REFRESH_HEADER, alg })).toBe('algorithm')
  })

  it.each([undefined, null, 1, ['ES256'], { toString: 'ES256' }])('%o is malformed', alg => {
    expect(atRegistration({ ...HEADER, alg })).toBe('malformed')
  })

  it('none is refused with an empty signature and with a right one', () => {
    const [header, payload] = jwsOf(device, { ...HEADER, alg: 'none' }, PAYLOAD).split('.')
    expect(refusal(verifyRegistration(`${header}.${payload}.`))).toBe('malformed')
    expect(
      refusal(verifyRefresh(`${encode({ ...REFRESH_HEADER, alg: 'none' })}.${payload}.AA`, registered(device))),
    ).toBe('algorithm')
  })

  it('HS256 with the public key as the secret is refused', () => {
    const pem = createPublicKey({ key: device.jwk, format: 'jwk' }).export({ type: 'spki', format: 'pem' })
    const signed = `${encode({ alg: 'HS256', typ: 'dbsc+jwt' })}.${encode(PAYLOAD)}`
    const jws = `${signed}.${createHmac('sha256', pem).update(signed).digest('base64url')}`
    expect(refusal(verifyRefresh(jws, registered(device)))).toBe('algorithm')
  })

  it('is the one that was offered, even if another proof is well signed', () => {
    const rsa = rsaDevice()
    expect(refusal(verifyRegistration(registrationProof(rsa, CHALLENGE)))).toBe('algorithm')
    expect(refusal(verifyRefresh(refreshProof(rsa, CHALLENGE), registered(device)))).toBe('algorithm')
    // A key of the one kind under the name of the other.
    expect(atRegistration({ ...HEADER, jwk: rsa.jwk })).toBe('key')
  })
})

describe('the header of a proof', () => {
  it.each([undefined, 'JWT', 'jwt', 'DBSC+JWT', 'application/dbsc+jwt', 'dbsc+jwt ', '', null, ['dbsc+jwt'], 1])(
    'typ %o is refused: a token for something else',
    typ => {
      expect(atRegistration({ ...HEADER, typ })).toBe('malformed')
      expect(atRefresh({ ...REFRESH_HEADER, typ })).toBe('malformed')
    },
  )

  it.each([[['b64']], [[]], [null], ['exp'], [false]])('crit %o is refused', crit => {
    expect(atRegistration({ ...HEADER, crit, b64: false })).toBe('malformed')
    expect(atRefresh({ ...REFRESH_HEADER, crit })).toBe('malformed')
  })

  it('a key at a refresh is refused, the right one and another, whatever is in it', () => {
    for (const jwk of [device.jwk, newDevice().jwk, null, {}, ''])
      expect(atRefresh({ ...REFRESH_HEADER, jwk })).toBe('malformed')
    const thief = newDevice()
    expect(atRefresh({ ...REFRESH_HEADER, jwk: thief.jwk }, PAYLOAD, thief)).toBe('malformed')
  })

  it('members that are inherited do not count', () => {
    expect(atRegistration(`{"__proto__":${JSON.stringify(HEADER)}}`)).toBe('malformed')
    const { jwk, ...rest } = HEADER
    expect(atRegistration(`{"__proto__":{"jwk":${JSON.stringify(jwk)}},${JSON.stringify(rest).slice(1)}`)).toBe(
      'malformed',
    )
  })
})

describe('the key of a registration', () => {
  const withKey = (jwk: unknown) => atRegistration({ ...HEADER, jwk })
  const x = Buffer.from(device.jwk.x as string, 'base64url')

  it.each([
    ['null', null],
    ['a text', JSON.stringify(device.jwk)],
    ['a list', [device.jwk]],
    ['empty', {}],
    ['without a kind', { ...device.jwk, kty: undefined }],
    ['of another kind', { ...device.jwk, kty: 'OKP' }],
    ['symmetric', { kty: 'oct', k: 'AAAA' }],
    ['on P-384 by its name', { ...device.jwk, crv: 'P-384' }],
    ['on secp256k1', generateKeyPairSync('ec', { namedCurve: 'secp256k1' }).publicKey.export({ format: 'jwk' })],
    ['on P-384', generateKeyPairSync('ec', { namedCurve: 'P-384' }).publicKey.export({ format: 'jwk' })],
    ['for Ed25519', generateKeyPairSync('ed25519').publicKey.export({ format: 'jwk' })],
    ['private', device.privateKey.export({ format: 'jwk' })],
    ['with an empty d', { ...device.jwk, d: '' }],
    ['with d set to null', { ...device.jwk, d: null }],
    ['for encryption', { ...device.jwk, use: 'enc' }],
    ['for another algorithm', { ...device.jwk, alg: 'ES384' }],
    ['without x', { ...device.jwk, x: undefined }],
    ['without y', { ...device.jwk, y: undefined }],
    ['with a number as x', { ...device.jwk, x: 7 }],
    ['with an x of 31 bytes', { ...device.jwk, x: x.subarray(1).toString('base64url') }],
    [
      'with an x of 33 bytes, a zero in front',
      { ...device.jwk, x: Buffer.concat([Buffer.alloc(1), x]).toString('base64url') },
    ],
    ['with an x in base64 with padding', { ...device.jwk, x: `${device.jwk.x}=` }],
    ['with the point at infinity', { ...device.jwk, x: 'A'.repeat(43), y: 'A'.repeat(43) }],
    ['beside the curve', { ...device.jwk, y: newDevice().jwk.y }],
    ['with coordinates beyond the field', { ...device.jwk, x: Buffer.alloc(32, 0xff).toString('base64url') }],
  ])('is refused if it is %s', (_, jwk) => {
    expect(withKey(jwk)).toBe('key')
  })

  it.each(['d', 'p', 'q', 'dp', 'dq', 'qi', 'oth', 'k'])('is refused if it has %s, which is secret', name => {
    expect(withKey({ ...device.jwk, [name]: 'AAAA' })).toBe('key')
  })
})

describe('the signature of a proof', () => {
  const signed = `${encode(REFRESH_HEADER)}.${encode(PAYLOAD)}`
  const right = signatureOf(device, signed)
  const [r, s] = [right.subarray(0, 32), right.subarray(32)]
  const n = BigInt('0xffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551')
  const p = BigInt('0xffffffff00000001000000000000000000000000ffffffffffffffffffffffff')
  const bytes = (value: bigint, length = 32) => Buffer.from(value.toString(16).padStart(2 * length, '0'), 'hex')
  const number = (buffer: Buffer) => BigInt(`0x${buffer.toString('hex')}`)
  const zero = Buffer.alloc(32)
  const of = (...parts: Buffer[]) =>
    refusal(verifyRefresh(`${signed}.${Buffer.concat(parts).toString('base64url')}`, registered(device)))

  it('is right', () => {
    expect(of(right)).toBeNull()
  })

  it.each([
    ['both are zero', [zero, zero]],
    ['r is zero', [zero, s]],
    ['s is zero', [r, zero]],
    ['r and s are one', [bytes(1n), bytes(1n)]],
    ['r is n', [bytes(n), s]],
    ['s is n', [r, bytes(n)]],
    ['both are n', [bytes(n), bytes(n)]],
    ['r is n - 1', [bytes(n - 1n), s]],
    ['s is n - 1', [r, bytes(n - 1n)]],
    ['r is p', [bytes(p), s]],
    ['r is zero and s is n', [zero, bytes(n)]],
    ['all bits are set', [Buffer.alloc(64, 0xff)]],
    ['r and s are swapped', [s, r]],
    ['r is n - r', [bytes(n - number(r)), s]],
    ['s is s + 1', [r, bytes((number(s) + 1n) % n)]],
    ['it is DER', [sign('sha256', Buffer.from(signed), device.privateKey)]],
    ['it is empty but for a byte', [Buffer.alloc(1)]],
    ['it has 63 bytes', [right.subarray(1)]],
    ['it has 65 bytes', [right, Buffer.alloc(1)]],
    ['it has 65 bytes, a zero in front', [Buffer.alloc(1), right]],
    ['each half has a zero in front', [Buffer.alloc(1), r, Buffer.alloc(1), s]],
    ['it stands twice', [right, right]],
    ['it is of SHA-384', [sign('sha384', Buffer.from(signed), { key: device.privateKey, dsaEncoding: 'ieee-p1363' })]],
  ])('is wrong if %s', (_, parts) => {
    expect(of(...parts)).toBe('signature')
  })

  it('is also right with n - s, as ECDSA has it: no proof counts twice, because its challenge does not', () => {
    const twin = Buffer.concat([r, bytes(n - number(s))])
    expect(
      verify(
        'sha256',
        Buffer.from(signed),
        { key: createPublicKey(device.privateKey), dsaEncoding: 'ieee-p1363' },
        twin,
      ),
    ).toBe(true)
    expect(of(twin)).toBeNull()
  })

  it('covers the header and the payload as they came', () => {
    const [header, payload, signature] = refreshProof(device, CHALLENGE).split('.')
    const key = registered(device)
    const other = encode({ typ: 'dbsc+jwt', alg: 'ES256' })
    expect(refusal(verifyRefresh(`${other}.${payload}.${signature}`, key))).toBe('signature')
    expect(refusal(verifyRefresh(`${header}.${encode({ jti: 'other' })}.${signature}`, key))).toBe('signature')
  })
})

describe('the text of a header', () => {
  it.each([
    ['abc.def.ghi', 'abc.def.ghi'],
    ['"abc.def.ghi"', 'abc.def.ghi'],
    ['"abc";a=1', 'abc'],
    ['"abc" ; a="b"; c', 'abc'],
    ['""', ''],
    ['', ''],
    ['"abc', null],
    ['"abc"def', null],
    ['"abc", "def"', null],
    ['"a\\"bc"', null],
    ['"a\u00e4"', null],
    ['"', null],
    [null, undefined],
    [undefined, undefined],
  ])('%o is %o', (header, text) => {
    expect(headerText(header)).toBe(text)
  })
})
