// Every link of every page leads somewhere: to a file and a heading that exist. test/package/packed.test.ts shows that the
// package brings these files along.
import { existsSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { ALL_PAGES, anchors, prose, root } from '../../support/pages.ts'

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
    const named = prose(page).matchAll(
      /\b((?:src|stores|test|examples)\/[\w./-]*\w\.(?:ts|mjs)|docs\/[\w./-]*\w\.md)\b/g,
    )
    for (const [, path] of named)
      if (!path!.includes('NAME')) expect(existsSync(join(root, path!)), `${page}: ${path}`).toBe(true)
  })
})
