// A real OpenID provider: refresh tokens are good once, and one that comes again ends its grant. It tells `receiver` of logouts.
import { exportJWK, generateKeyPair, type JWTPayload, SignJWT } from 'jose'
import Provider from 'oidc-provider'
import { listening } from '../support/listening.ts'

const CALLBACK = { redirect_uris: ['https://shop.example/callback'] }

export async function startOidcProvider() {
  const { server, url: issuer, close } = await listening(() => {})
  const { privateKey } = await generateKeyPair('RS256', { extractable: true })
  const at = { receiver: '', gate: async (): Promise<void> => {}, failures: 0 }
  const count = { refreshed: 0, reused: 0 }
  const sent: { token: string; status: number }[] = []
  const client = {
    grant_types: ['authorization_code', 'refresh_token'],
    client_secret: 'secret',
    token_endpoint_auth_method: 'client_secret_post',
    backchannel_logout_uri: 'https://shop.example/back-channel-logout',
    ...CALLBACK,
  }
  const provider = new Provider(issuer, {
    clients: [
      { ...client, client_id: 'shop', backchannel_logout_session_required: true },
      { ...client, client_id: 'by-subject' },
    ],
    jwks: { keys: [{ ...(await exportJWK(privateKey)), kid: 'one', alg: 'RS256', use: 'sig' }] },
    rotateRefreshToken: true,
    scopes: ['openid', 'offline_access'],
    features: { devInteractions: { enabled: false }, backchannelLogout: { enabled: true } },
    ttl: { AccessToken: 3600, RefreshToken: 86_400, Grant: 86_400, IdToken: 3600, Session: 86_400 },
    findAccount: (_context: unknown, accountId: string) => ({ accountId, claims: async () => ({ sub: accountId }) }),
    cookies: { keys: ['key'] },
    async fetch(_url: URL, { method, headers, body }: RequestInit) {
      const response = await fetch(at.receiver, { method: method!, headers: headers!, body: body! })
      sent.push({ token: new URLSearchParams(String(body)).get('logout_token')!, status: response.status })
      return response
    },
  })
  provider.use(async (context: any, next: () => Promise<void>) => {
    if (context.path !== '/token') return next()
    await at.gate()
    if (at.failures-- > 0) {
      context.status = 503
      return
    }
    await next()
    if (context.status === 200) count.refreshed++
    else if (context.body?.error === 'invalid_grant') count.reused++
  })
  server.on('request', provider.callback())
  const clientOf = async (name: string) => provider.Client.find(name)
  const grants = new Map<string, string>()
  return {
    issuer,
    jwks: `${issuer}/jwks`,
    url: `${issuer}/token`,
    at,
    count,
    sent,
    /** Sends a logout token as a logout does. */
    logOut: async (sub: string, sid: string, name = 'shop') => (await clientOf(name)).backchannelLogout(sub, sid),
    idToken: async (sub: string, sid: string): Promise<string> => {
      const token = new provider.IdToken({ sub }, { client: await clientOf('shop'), ctx: undefined })
      token.mask = { sub: null }
      token.set('sid', sid)
      return token.issue({ use: 'idtoken' })
    },
    /** Signed by the provider's own key, whatever it says. */
    sign: (claims: JWTPayload) => new SignJWT(claims).setProtectedHeader({ alg: 'RS256', kid: 'one' }).sign(privateKey),
    /** A refresh token of a grant with this name. */
    async grant(name: string): Promise<string> {
      const grant = new provider.Grant({ accountId: 'ada', clientId: 'shop' })
      grant.addOIDCScope('openid offline_access')
      const grantId = await grant.save()
      grants.set(name, grantId)
      const now = Math.floor(Date.now() / 1000)
      const given = { accountId: 'ada', grantId, gty: 'authorization_code', scope: 'openid offline_access' }
      const token = { client: await clientOf('shop'), authTime: now, rotations: 0, iiat: now, claims: {}, nonce: 'n' }
      return new provider.RefreshToken({ ...given, ...token }).save()
    },
    isEnded: async (name: string) => (await provider.Grant.find(grants.get(name)!)) === undefined,
    stop: close,
  }
}
