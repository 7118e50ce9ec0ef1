import { execFile } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { promisify } from 'node:util'
import type { BrowserContext } from 'playwright-core'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { PASSWORD } from '../support/example-service.ts'
import { blocksOf, read, root } from '../support/pages.ts'
import { openBrowser, profileFolder } from '../support/services/chromium.ts'
import { describeEngine } from '../support/services/engines.ts'
import { below } from './dialects.ts'
import { walkPages } from './pages.ts'
import { folderOf, type RunningRecipe, startRecipe } from './recipe.ts'
import { walk } from './walk.ts'

// Next answers 500 to whatever an action throws.
walk('the recipe for Next', 'next', { dialect: below('/api') }, running =>
  walkPages(running, { crossOrigin: 500, storeDown: 500 }, reader => {
    it('answer an action that a script calls with the page as it is afterwards', async () => {
      const ada = reader()
      await ada.click('Log in', { username: 'ada', password: PASSWORD })
      const { answer } = await ada.open()
      const id = /name="\$ACTION_ID_(\w+)"/.exec(answer.text)![1]!
      const headers = { 'Next-Action': id, Accept: 'text/x-component', 'Content-Type': 'text/plain', Origin: ada.url }
      const called = await ada.send('POST', '/', '[]', headers)
      expect([called.status, called.text]).toEqual([200, expect.stringMatching(/\["Coats: ",1\]/)])
      ada.cookies.delete('session_id')
      expect(await ada.open()).toMatchObject({ name: null })
    })
  }),
)

/** What `create-next-app --empty` of 16.4 makes, and the page leaves as it is. */
const FRESH = {
  'package.json': JSON.stringify({ name: 'fresh', private: true, scripts: { start: 'next start' } }),
  'app/layout.tsx': `export default function RootLayout({ children }: LayoutProps<"/">) {
  return <html lang="en"><body>{children}</body></html>;
}
`,
  'app/page.tsx': 'export default function Home() {\n  return <div>Hello world!</div>;\n}\n',
  // As that of the recipe, for an older target.
  'tsconfig.json': read('examples/next/tsconfig.json').replace('ES2022', 'ES2017'),
}
/** The files that the page shows, by their place in the application. */
const PASTED = blocksOf('docs/servers/next.md').map(({ markers, code }): [string, string] => [
  (markers.get('save') ?? markers.get('file')!).replace('examples/next/', ''),
  code,
])

describeEngine('chromium', 'the files of the page of Next, pasted into a new application, in Chromium', () => {
  let folder: string
  let running: RunningRecipe
  let profile: Awaited<ReturnType<typeof profileFolder>>
  let browser: BrowserContext
  beforeAll(async () => {
    mkdirSync(join(root, '.tmp'), { recursive: true })
    folder = mkdtempSync(join(root, '.tmp/fresh-next-'))
    for (const [path, code] of [...Object.entries(FRESH), ...PASTED]) {
      mkdirSync(dirname(join(folder, path)), { recursive: true })
      writeFileSync(join(folder, path), code)
    }
    symlinkSync(join(folderOf('next'), 'node_modules'), join(folder, 'node_modules'))
    // With its types.
    await promisify(execFile)(process.execPath, ['node_modules/.bin/next', 'build'], {
      cwd: folder,
      env: { ...process.env, NEXT_TELEMETRY_DISABLED: '1' },
    })
    running = await startRecipe(`../.tmp/${basename(folder)}`)
    profile = await profileFolder()
    browser = await openBrowser(profile.path)
    browser.setDefaultTimeout(20_000)
  }, 240_000)
  afterAll(async () => {
    await browser?.close()
    await profile?.remove()
    await running?.stop()
    rmSync(folder, { recursive: true, force: true })
  })

  it('lead a visitor to the login, log in, stay over a reload, and log out in every tab', async () => {
    const path = () => new URL(page.url()).pathname
    const [page, other] = [await browser.newPage(), await browser.newPage()]
    const visitor = await page.goto(`${running.url}/orders`)
    expect([visitor!.status(), path()]).toEqual([200, '/login'])

    const enter = async (password: string) => {
      await page.fill('[name=username]', 'ada')
      await page.fill('[name=password]', password)
      await page.click('text=Log in')
    }
    await enter('byron')
    await page.waitForSelector('text=Wrong name or password.')
    await enter('lovelace')
    await page.waitForSelector('text=Logged in: ada. Coats: 0')
    await page.reload()
    expect([path(), await page.textContent('p')]).toEqual(['/orders', 'Logged in: ada. Coats: 0'])
    await page.click('text=Order a coat')
    await page.waitForSelector('text=Coats: 1')

    running.control({ isDown: true })
    await page.click('text=Order a coat')
    await page.waitForSelector('text=Please try again later.')
    expect((await page.goto(`${running.url}/orders`))!.status()).toBe(503)
    running.control({})
    const handler = () => page.evaluate(() => fetch('/api/profile').then(async one => [one.status, await one.json()]))
    await page.goto(`${running.url}/orders`)
    expect(await handler()).toEqual([200, { id: 'u_42', name: 'ada' }])

    await other.goto(`${running.url}/orders`)
    await other.click('text=Log out')
    await other.waitForURL('**/login')
    await page.click('text=Order a coat')
    await page.waitForURL('**/login')
    expect(await handler()).toEqual([401, expect.objectContaining({ error: 'ERR_SESSION_UNAUTHENTICATED' })])
    await page.goto(`${running.url}/orders`)
    expect(path()).toBe('/login')
  })
})
