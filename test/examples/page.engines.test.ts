// The example's page in a real browser: what people see, click and read.
import { stat, writeFile } from 'node:fs/promises'
import type { BrowserContext, Page } from 'playwright-core'
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from 'vitest'
import { Client, PASSWORD } from '../support/example-service.ts'
import { openBrowser, profileFolder } from '../support/services/chromium.ts'
import { describeEngine } from '../support/services/engines.ts'
import { type InProcess, openService } from './in-process.ts'

const MINUTE = 60_000
const PICTURE = new URL('../../docs/pictures/session.png', import.meta.url)
const NEW_PASSWORD = 'a password that is new'

describeEngine('chromium', 'the page at / in Chromium', () => {
  let service: InProcess
  let url: string
  let profile: Awaited<ReturnType<typeof profileFolder>>
  let browser: BrowserContext
  let page: Page
  const complaints: string[] = []

  beforeAll(async () => {
    profile = await profileFolder()
    browser = await openBrowser(profile.path)
    browser.setDefaultTimeout(20_000)
    page = await browser.newPage()
    // Messages of the console would be broken files, or what the policy refused.
    page.on('pageerror', error => complaints.push(String(error)))
    page.on('console', message => {
      if (message.type() === 'error' && !/status of (401|503)/.test(message.text())) complaints.push(message.text())
    })
  })
  afterAll(async () => {
    await browser?.close()
    await profile?.remove()
  })
  beforeEach(async () => {
    complaints.length = 0
    service = await openService()
    url = service.url
    await browser.clearCookies()
    await page.goto(url)
  })
  afterEach(async () => {
    // The page looks at its session by itself: a server that is gone would be a complaint.
    await page.goto('about:blank')
    service.stop()
    expect(complaints).toEqual([])
  })

  /** By keyboard alone: the name has the focus when the page opens. */
  async function logIn(password = PASSWORD) {
    await page.keyboard.type('ada')
    await page.keyboard.press('Tab')
    await page.keyboard.type(password)
    await page.keyboard.press('Tab')
    await page.keyboard.press('Enter')
  }
  const see = (text: string | RegExp) => page.getByText(text).filter({ visible: true }).first().waitFor()
  const sessionCookie = async () => (await browser.cookies()).find(({ name }) => name === 'session_id')

  it('logs in by keyboard, shows who it is and on which device, and logs out', async () => {
    await logIn()
    await page.getByRole('heading', { name: 'Logged in as ada' }).waitFor()
    expect(await page.locator('#id').textContent()).toBe('42')
    await page.locator('#devices li').waitFor()
    expect(await page.locator('#devices li').textContent()).toMatch(/Chrome on Linux.*This device/)
    expect(await sessionCookie()).toMatchObject({ httpOnly: true, secure: true, sameSite: 'Lax' })
    expect(await page.evaluate('document.cookie')).toBe('')

    await page.getByRole('button', { name: 'Log out', exact: true }).click()
    await page.getByRole('heading', { name: 'Log in' }).waitFor()
    expect(await sessionCookie()).toBeUndefined()
  })

  it('says what is wrong with a wrong password, and where', async () => {
    await logIn('wrong')
    await see('Wrong name or password.')
    expect(await page.getByRole('alert').filter({ hasText: 'Wrong name' }).count()).toBe(1)
    const password = page.getByLabel('Password', { exact: true })
    expect(await page.evaluate('document.activeElement.id')).toBe('password')
    expect(await password.getAttribute('aria-invalid')).toBe('true')
    // The wrong one is selected: typing replaces it.
    await page.keyboard.type(PASSWORD)
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { name: 'Logged in as ada' }).waitFor()
  })

  it('lists the devices by what they call themselves, which is text, and ends another one', async () => {
    const phone = new Client(url, 'Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) Version/18.0 Safari/604.1')
    await phone.login()
    await new Client(url, '<img src=x onerror=alert(1)>').login()
    await logIn()
    await see('<img src=x onerror=alert(1)>')
    expect(await page.locator('#devices img').count()).toBe(0)
    await page.getByRole('button', { name: /^Log out Safari on iPhone/ }).click()
    await see('Safari on iPhone has been logged out.')
    expect(await page.locator('#devices li').count()).toBe(2)
    expect(await phone.whoami()).toBeNull()
    expect(await page.evaluate('document.activeElement.id')).toBe('devices-title')
  })

  it('changes the password: this browser goes on, all others are out', async () => {
    const other = new Client(url)
    await other.login()
    await logIn()
    await page.getByLabel('Old password').fill('wrong password')
    await page.getByLabel('New password').fill(NEW_PASSWORD)
    await page.getByRole('button', { name: 'Change password' }).click()
    await see('The old password is not right.')
    expect(await other.whoami()).toBe('ada')

    const before = await sessionCookie()
    await page.getByLabel('Old password').fill(PASSWORD)
    await page.getByRole('button', { name: 'Change password' }).click()
    await see('Your password is changed. All your other devices have been logged out.')
    expect((await sessionCookie())?.value).not.toBe(before?.value)
    expect(await other.whoami()).toBeNull()
    await page.locator('#devices li').waitFor()
    expect(await page.locator('#devices li').count()).toBe(1)
  })

  it('says so when the session has expired', async () => {
    await logIn()
    await page.locator('#devices li').waitFor()
    service.at.later = 31 * MINUTE
    await page.getByLabel('Old password').fill(PASSWORD)
    await page.getByLabel('New password').fill(NEW_PASSWORD)
    await page.getByRole('button', { name: 'Change password' }).click()
    await see('Your session has expired or was ended. Please log in again.')
    await page.getByRole('heading', { name: 'Log in' }).waitFor()
  })

  it('tells an outage from a logout', async () => {
    await logIn()
    await page.locator('#devices li').waitFor()
    service.at.fault = () => Promise.reject(new Error('down'))
    await page.goto(url)
    await see('You have not been logged out.')
    service.at.fault = null
    await page.getByRole('link', { name: 'Try again' }).click()
    await page.getByRole('heading', { name: 'Logged in as ada' }).waitFor()
  })

  it('is the picture in the documentation: COATCHECK_PICTURES=1 takes it anew', async () => {
    const phone = new Client(url, 'Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) Version/18.0 Safari/604.1')
    await phone.login()
    await page.setViewportSize({ width: 640, height: 700 })
    await logIn()
    await page.locator('#devices li').nth(1).waitFor()
    const picture = await page.screenshot({ fullPage: true })
    const { size } = await stat(PICTURE)
    expect(picture.length).toBeGreaterThan(size / 2)
    expect(picture.length).toBeLessThan(size * 2)
    if (process.env.COATCHECK_PICTURES) await writeFile(PICTURE, picture)
  })
})
