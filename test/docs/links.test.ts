// Every link of every page leads somewhere: to a file that the package brings along, to a heading that exists.
import { execFile } from 'node:child_process'
import { existsSync, statSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { describe, expect, it } from 'vitest'
import { ALL_PAGES, anchors, PAGES, prose, read, root } from '../support/pages.ts'

/** The links of a page that stay in the repository: the path from the root, and the anchor. */
const links = (page: string) =>
  [...prose(page).matchAll(/\]\(([^)\s]+)\)/g)]
    .map(match => match[1]!)
    .filter(target => !/^(?:https|mailto):/.test(target))
    .map(target => {
      const [path, anchor] = target.split('#')
      return { target, path: path === '' ? page : join(dirname(page), path!), anchor }
    })

describe('the links', () => {
  it.each(ALL_PAGES)('of %s lead somewhere', page => {
    for (const { target, path, anchor } of links(page)) {
      expect(existsSync(join(root, path)), `${page}: ${target}`).toBe(true)
      if (anchor !== undefined) expect(anchors(path), `${page}: ${target}`).toContain(anchor)
    }
  })

  it.each(ALL_PAGES)('and the paths that %s names exist', page => {
    const named = read(page).matchAll(
      /\b((?:src|stores|test|examples)\/[\w./-]*\w\.(?:ts|mjs)|docs\/[\w./-]*\w\.md)\b/g,
    )
    for (const [, path] of named)
      if (!path!.includes('NAME')) expect(existsSync(join(root, path!)), `${page}: ${path}`).toBe(true)
  })

  it('of README and docs lead to files that the package brings along', async () => {
    const { stdout } = await promisify(execFile)('npm', ['pack', '--dry-run', '--json', '--ignore-scripts'], {
      cwd: root,
      maxBuffer: 2 ** 26,
    })
    const packed = (JSON.parse(stdout)[0].files as { path: string }[]).map(({ path }) => path)
    for (const page of PAGES)
      for (const { target, path } of links(page)) {
        const isPacked = statSync(join(root, path)).isDirectory()
          ? packed.some(file => file.startsWith(path))
          : packed.includes(path)
        expect(isPacked, `${page}: ${target} is in the package`).toBe(true)
      }
  }, 60_000)
})
