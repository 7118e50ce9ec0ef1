// @ts-check
// A Chromium that binds sessions to its device. Chrome does where the machine has a TPM; on Linux Chromium 150 does with
// keys in software, if it is told to, and the versions after it that were tried do not register. It is unpacked beside
// the installed one, from Debian's packages. Plain JavaScript, as `npm run test:all` reads it before any TypeScript runs.
import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const VERSION = '150.0.7871.100-1~deb12u1'
const PACKAGES = ['chromium', 'chromium-common'].map(name => `${name}=${VERSION}`)
const folder = fileURLToPath(new URL(`../../../node_modules/.cache/chromium-${VERSION}`, import.meta.url))

export const executablePath = join(folder, 'usr/lib/chromium/chromium')

/** Without a token of the origin trial, as often as wanted, on localhost, with keys in software. */
export const DEVICE_ARGUMENTS = [
  `--enable-features=${[
    'DeviceBoundSessions:RequireOriginTrialTokens/false/RefreshQuota/false/CheckSubdomainRegistration/false/SchemaVersion/2',
    'EnableBoundSessionCredentialsSoftwareKeysForManualTesting',
  ].join()}`,
]

/** @returns {string | null} what is missing */
export const missingDeviceChromium = () =>
  existsSync(executablePath)
    ? null
    : `not unpacked: Debian's ${PACKAGES[0]}, by \`node test/support/services/device-chromium.mjs\` on Debian 12`

/** Unpacks it where apt-get knows the packages; elsewhere it stays missing. */
export function unpackDeviceChromium() {
  const cwd = `${folder}.${process.pid}`
  mkdirSync(cwd, { recursive: true })
  const unpack = `apt-get download ${PACKAGES.join(' ')} && for each in *.deb; do dpkg -x "$each" . && rm "$each"; done`
  const { status } = spawnSync('sh', ['-ec', unpack], { cwd, stdio: ['ignore', 'ignore', 'inherit'] })
  rmSync(folder, { recursive: true, force: true })
  if (status === 0) renameSync(cwd, folder)
  else rmSync(cwd, { recursive: true, force: true })
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  if (missingDeviceChromium() !== null) unpackDeviceChromium()
  console.log(missingDeviceChromium() ?? executablePath)
}
