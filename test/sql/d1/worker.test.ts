// The Worker of docs/servers/cloudflare.md, as it stands there, in workerd with D1.
import { createRequire } from 'node:module'
import { D1Store } from 'coatcheck/stores/d1'
import { build } from 'esbuild'
import { expect, it, vi } from 'vitest'
import { coatcheck } from '../../support/command.ts'
import { Client } from '../../support/example-service.ts'
import { blocksOf, root } from '../../support/pages.ts'
import { build as buildPackage } from '../../support/scripts/build.mjs'
import { describeEngine } from '../../support/services/engines.ts'

const block = (language: string, at = 0) =>
  blocksOf('docs/servers/cloudflare.md').filter(each => each.language === language)[at]!.code

/** What wrangler makes of the Worker: one module, which imports what workerd has. */
async function bundled(): Promise<string> {
  await buildPackage()
  const { outputFiles } = await build({
    stdin: { contents: block('ts'), loader: 'ts', resolveDir: root },
    bundle: true,
    format: 'esm',
    write: false,
    conditions: ['workerd', 'worker'],
    external: ['node:*', 'cloudflare:*'],
  })
  return outputFiles[0]!.text
}

describeEngine('d1', 'the Worker of the page', () => {
  it('logs in, shows the profile, logs out, and sweeps by its cron', async () => {
    const { Miniflare } = createRequire(new URL('../../support/drivers/package.json', import.meta.url))('miniflare')
    const { compatibility_date, compatibility_flags, d1_databases } = JSON.parse(block('json'))
    const printed = vi.spyOn(console, 'log')
    const worker = new Miniflare({
      modules: true,
      script: await bundled(),
      compatibilityDate: compatibility_date,
      compatibilityFlags: compatibility_flags,
      d1Databases: d1_databases.map(({ binding }: { binding: string }) => binding),
    })
    try {
      const { out: ddl } = await coatcheck(['ddl', '--store', 'sqlite:'])
      expect(ddl.trim()).toBe(D1Store.ddl().trim())
      const database = await worker.getD1Database('DB')
      for (const statement of ddl.split(';').filter(text => text.trim() !== '')) await database.prepare(statement).run()
      const url = String(await worker.ready).replace(/\/$/, '')
      const [visitor, other] = [new Client(url), new Client(url)]
      const logIn = (client: Client) => client.send('POST', '/login', { password: 'lovelace' })
      expect((await visitor.send('POST', '/login', { password: 'byron' })).status).toBe(401)
      const profile = () => visitor.send('GET', '/profile')
      const { cookies } = visitor
      const told = [await logIn(visitor), await profile()]
      other.cookies.set(...([...cookies][0] as [string, string]))
      told.push(await visitor.send('POST', '/logout'))
      // As the README prints it.
      expect(told.map(({ text }) => text)).toEqual(['"Logged in."', '{"id":"u_42","name":"ada"}', '"Logged out."'])
      // By a copy of the cookie, in another isolate or in this one.
      expect((await other.send('GET', '/profile')).status).toBe(401)
      await logIn(visitor)
      const rows = async () => (await database.prepare('SELECT count(*) AS n FROM coatcheck_sessions').first()).n
      const before = await rows()
      await database.prepare('UPDATE coatcheck_sessions SET expires_at = 1').run()
      expect(await (await worker.getWorker()).scheduled()).toMatchObject({ outcome: 'ok' })
      expect([before, await rows()]).toEqual([expect.any(Number), 0])
      expect(before).toBeGreaterThan(0)
      // Why a request has no session is said where NODE_DEBUG asks for it.
      expect(printed.mock.calls).toEqual([])
    } finally {
      printed.mockRestore()
      await worker.dispose()
    }
    // It builds the package.
  }, 240_000)
})
