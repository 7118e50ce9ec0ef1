// Debian's Chromium, driven by playwright-core, with all that would speak to the network by itself switched off.
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type BrowserContext, chromium } from 'playwright-core'
import { findBinary } from './process.ts'

const ARGUMENTS = [
  '--no-sandbox',
  '--disable-gpu',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
  '--disable-quic',
]

type Options = Parameters<typeof chromium.launchPersistentContext>[1]

/** A folder for a browser's profile: what survives its restart. `remove` it after the browser is closed. */
export async function profileFolder(): Promise<{ path: string; remove(): Promise<void> }> {
  const path = await mkdtemp(join(tmpdir(), 'coatcheck-chromium-'))
  return { path, remove: () => rm(path, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 }) }
}

/** Starts a browser of its own on a profile folder; `close()` of the context ends it. */
export function openBrowser(profile: string, options: Options = {}): Promise<BrowserContext> {
  const executablePath = options.executablePath ?? findBinary('chromium')
  if (executablePath === null) throw new Error('chromium is not on PATH')
  return chromium.launchPersistentContext(profile, {
    headless: true,
    ...options,
    executablePath,
    args: [...ARGUMENTS, ...(options.args ?? [])],
  })
}
