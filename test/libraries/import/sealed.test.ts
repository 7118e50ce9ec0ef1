// What the readers of cookies that hold a session make of what came: tokens and seals of the real packages, and all that
// somebody changed.
import { createCipheriv, hkdfSync, randomBytes } from 'node:crypto'
import { fromIronSession, fromNextAuth, type OldSessions } from 'coatcheck/import'
import { sealData } from 'iron-session'
import { describe, expect, it } from 'vitest'
import { HOUR, MINUTE, replacement, SECRET as SHORT } from '../../support/old-sessions.ts'

// By a name that the compiler does not follow: its types bring those of a browser into all files.
const load = (name: string): Promise<any> => import(name)
const { decode, encode } = await load('@auth/core/jwt')
const SECRET = `${SHORT}, 32 characters or more`
const OTHER = 'the secret of another service, 32 characters'
const name = 'authjs.session-token'

/** A node of the new service that imports what a reader finds. `at`: what its clock says. */
function nodeOver(from: OldSessions<any>, at = Date.now()) {
  const world = replacement()
  world.clock.now = at
  const toLogin = (data: any) => ({ user: { id: 42n, name: data.name ?? data.user.name } })
  return { ...world, ...world.node({ importer: { from, toLogin } as never }) }
}
/** The value in pieces of so many characters. */
const inPieces = (cookie: string, value: string, size: number) =>
  Array.from(
    { length: Math.ceil(value.length / size) },
    (_, at) => `${cookie}.${at}=${value.slice(at * size, (at + 1) * size)}`,
  )

describe('a token of NextAuth 4', () => {
  // By `encode` of next-auth 4.24.15; services.test.ts asks the package itself where it is installed.
  const MADE = 1_795_546_893_753
  const TOKEN =
    'eyJhbGciOiJkaXIiLCJlbmMiOiJBMjU2R0NNIn0..CgJsDu5oAkCLLvzj.euZlvvN0gglXC0lAViTcgsRvFZVSH5tMxVetiZ4yTHJG0HoO2T7i-yzZQJwsxemeM6BFAAGjKSXZFlteQ0Rj3ltwuZa7CPgYuzJ5ONxXuavDVzvZmfLmvtiRz4Et59TyB5oxzpzR-tw._VWS-_GcknECzHRWvHuT9A'

  it.each(['next-auth.session-token', '__Secure-next-auth.session-token', 'a-name-of-its-own'])(
    'is read from %s',
    async cookie => {
      const { ask } = nodeOver(fromNextAuth({ cookie, secret: [OTHER, SECRET] }), MADE + MINUTE)
      const { session } = await ask(`${cookie}=${TOKEN}`)
      expect(session?.user?.name).toBe('ada')
      expect(session?.createdAt, 'as old as the token').toBe(Math.floor(MADE / 1000) * 1000)
    },
  )

  it('is worth nothing when it has expired, or with another secret', async () => {
    const ask = (secret: string, at: number) => nodeOver(fromNextAuth({ cookie: 'c', secret }), at).ask(`c=${TOKEN}`)
    expect((await ask(SECRET, MADE + HOUR)).session).toBeNull()
    expect((await ask(OTHER, MADE)).session).toBeNull()
  })
})

describe('a token of Auth.js 5', () => {
  const token = (claims: object = {}) =>
    encode({ token: { sub: '42', name: 'ada', ...claims }, secret: SECRET, salt: name })
  const reader = () => fromNextAuth({ cookie: name, secret: SECRET })

  it('is read whole or in pieces, which go with it', async () => {
    const long = await token({ picture: 'x'.repeat(6000) })
    const { ask, told } = nodeOver(reader())
    expect((await ask(`${name}=${await token()}`)).name).toBe('ada')
    const { name: who, next } = await ask(inPieces(name, long, 3936).join('; '))
    expect(who).toBe('ada')
    // The token itself is still good: it goes when it was found to be imported.
    expect((await ask(next())).removed).toEqual([name, ...[0, 1, 2].map(at => `${name}.${at}`)])
    expect(told).toEqual([])
  })

  it('is ended by a logout everywhere also where Auth.js has sealed it anew since, as it does again and again', async () => {
    const { ask, clock, importer } = nodeOver(reader(), Date.now() - 10 * MINUTE)
    await importer.invalidateUser(42n)
    clock.now += 10 * MINUTE
    expect((await ask(`${name}=${await token()}`)).session).toBeNull()
  })

  it('is none where a piece is missing, too long, in another place, or there twice', async () => {
    const [first, second, third] = inPieces(name, await token({ picture: 'x'.repeat(6000) }), 3936)
    const { ask } = nodeOver(reader())
    const planted = `${name}.1=${'A'.repeat(100)}`
    for (const pieces of [
      [first, third],
      [second, third],
      [first, second?.replace('.1=', '.2=')],
      [first, second, third, planted],
      [`${first}${'A'.repeat(200)}`, second, third],
    ])
      expect((await ask(pieces.join('; '))).session).toBeNull()
    expect((await ask([third, first, second].join('; '))).name, 'in any order').toBe('ada')
  })

  it('of its first releases, by A256GCM, is read too', async () => {
    const key = Buffer.from(hkdfSync('sha256', SECRET, name, `Auth.js Generated Encryption Key (${name})`, 32))
    const header = Buffer.from('{"alg":"dir","enc":"A256GCM"}').toString('base64url')
    const iv = randomBytes(12)
    const cipher = createCipheriv('aes-256-gcm', key, iv).setAAD(Buffer.from(header))
    const claims = {
      sub: '42',
      name: 'ada',
      iat: Math.floor(Date.now() / 1000),
      exp: Math.floor(Date.now() / 1000) + 60,
    }
    const text = Buffer.concat([cipher.update(JSON.stringify(claims)), cipher.final()])
    const made = [header, '', ...[iv, text, cipher.getAuthTag()].map(part => part.toString('base64url'))].join('.')
    expect(await decode({ token: made, secret: SECRET, salt: name }), 'by the package itself').toMatchObject(claims)
    expect((await nodeOver(reader()).ask(`${name}=${made}`)).name).toBe('ada')
  })

  it('is refused in any other writing of the same bytes, so that it is imported once', async () => {
    const made = await token()
    const { ask, store } = nodeOver(reader())
    const [header, none, iv, text, tag] = made.split('.') as [string, string, string, string, string]
    const last = { A: 'B', Q: 'R', g: 'h', w: 'x' }[tag.at(-1)!]
    const others = [
      [header, none, iv, text, `${tag}=`],
      [header, none, iv, `${text}.`, tag],
      [header, none, iv, text, `${tag.slice(0, -1)}${last}`],
      [header, none, `${iv}*`, text, tag],
      [header, 'AA', iv, text, tag],
      [Buffer.from('{"alg":"none"}').toString('base64url'), none, iv, text, tag],
      [Buffer.from('{"alg":"dir","enc":"toString"}').toString('base64url'), none, iv, text, tag],
    ]
    for (const parts of others) expect((await ask(`${name}=${parts.join('.')}`)).session, parts.join('.')).toBeNull()
    expect(store.calls).toEqual([])
    expect((await ask(`${name}=${made}`)).name).toBe('ada')
  })
})

describe('a seal of iron-session', () => {
  const seal = (password: Record<string, string> | string, ttl = 3600) => sealData({ name: 'ada' }, { password, ttl })
  const reader = (password: Record<string, string> | string = SECRET) => fromIronSession({ cookie: 'iron', password })

  it('is opened by the password of its ID', async () => {
    const { ask } = nodeOver(reader({ 1: SECRET, 2: OTHER }))
    expect((await ask(`iron=${await seal(SECRET)}`)).name).toBe('ada')
    expect((await ask(`iron=${await seal({ 2: OTHER })}`)).name).toBe('ada')
    expect((await ask(`iron=${await seal({ 3: OTHER })}`)).session).toBeNull()
    expect((await ask(`iron=${await seal(OTHER)}`)).session, 'the password of another ID').toBeNull()
    const foreign = (await seal(SECRET)).replace('*1*', '*constructor*')
    expect((await ask(`iron=${foreign}`)).session).toBeNull()
  })

  it('is worth nothing when it has expired; one without an end does not', async () => {
    const [short, endless] = [await seal(SECRET, 60), await seal(SECRET, 0)]
    const { ask } = nodeOver(reader(), Date.now() + HOUR)
    expect((await ask(`iron=${short}`)).session).toBeNull()
    expect((await ask(`iron=${endless}`)).name).toBe('ada')
  })

  it('comes whole or in pieces, and is one session however it was written', async () => {
    const made = await seal(SECRET)
    const { ask, sessions } = nodeOver(reader())
    for (const cookie of [
      `iron=${made}`,
      inPieces('iron', made, 100).join('; '),
      `iron=${made.replace('~2', '~3')}`,
      `iron=${made.replace('~2', '')}`,
      `iron=${made.replaceAll('*', '%2A')}`,
    ])
      expect((await ask(cookie)).name, cookie).toBe('ada')
    expect(await sessions.list(42n)).toHaveLength(1)
    for (let at = 0; at < made.indexOf('~'); at += 7) {
      const other = made[at] === 'A' ? 'B' : 'A'
      expect((await ask(`iron=${made.slice(0, at)}${other}${made.slice(at + 1)}`)).session, `${at}`).toBeNull()
    }
  })
})
