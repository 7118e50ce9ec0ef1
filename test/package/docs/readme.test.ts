// What the README leads to, and the scripts that all pages name.
import { existsSync, readdirSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { ALL_PAGES, PAGES, prose, read, root } from '../../support/pages.ts'

describe('the README', () => {
  it('links each of the nine guarantees to its tests', () => {
    const linked = [...prose('README.md').matchAll(/^(\d)\. \[[^\]]+\]\((test\/guarantees\/g(\d)-[\w-]+\.ts)\)/gm)]
    expect(linked.map(match => match[1])).toEqual(['1', '2', '3', '4', '5', '6', '7', '8', '9'])
    for (const [, number, path, named] of linked) {
      expect(named).toBe(number)
      expect(existsSync(join(root, path!)), path).toBe(true)
    }
  })

  it('leads to every page of docs, over links of the pages', () => {
    const reached = new Set(['README.md'])
    for (const page of reached)
      for (const [, target] of prose(page).matchAll(/\]\(([^)\s#]+\.md)(?:#[^)]*)?\)/g)) {
        const linked = join(dirname(page), target!)
        if (PAGES.includes(linked)) reached.add(linked)
      }
    expect([...reached].sort()).toEqual([...PAGES].sort())
  })
})

describe('all pages', () => {
  it('name scripts that exist', () => {
    const scripts = PAGES.flatMap(page =>
      [...read(page).matchAll(/npm (?:run (?:--silent )?([\w:]+)|(start|test)\b)/g)].map(
        match => match[1] ?? match[2]!,
      ),
    )
    expect(scripts.length).toBeGreaterThan(3)
    // A recipe has scripts of its own.
    const examples = readdirSync(join(root, 'examples')).map(name => `examples/${name}/package.json`)
    const manifests = ['package.json', ...examples].filter(path => existsSync(join(root, path)))
    const known = manifests.flatMap(path => Object.keys(JSON.parse(read(path)).scripts ?? {}))
    for (const script of scripts) expect(known).toContain(script)
  })

  it.each(ALL_PAGES)('name paths that exist: %s', page => {
    const named = prose(page).matchAll(
      /\b((?:src|stores|test|examples)\/[\w./-]*\w\.(?:ts|mjs)|docs\/[\w./-]*\w\.md)\b/g,
    )
    for (const [, path] of named)
      if (!path!.includes('NAME')) expect(existsSync(join(root, path!)), `${page}: ${path}`).toBe(true)
  })
})
