// What the README leads to, and the scripts that all pages name.
import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { PAGES, prose, read, root } from '../../support/pages.ts'

const README = read('README.md')

describe('the README', () => {
  it('links each of the nine guarantees to its tests', () => {
    const linked = [...prose('README.md').matchAll(/^(\d)\. \[[^\]]+\]\((test\/guarantees\/g(\d)-[\w-]+\.ts)\)/gm)]
    expect(linked.map(match => match[1])).toEqual(['1', '2', '3', '4', '5', '6', '7', '8', '9'])
    for (const [, number, path, named] of linked) {
      expect(named).toBe(number)
      expect(existsSync(join(root, path!)), path).toBe(true)
    }
  })

  it('leads to every page of docs', () => {
    // The page of a server, and of a library to move from, stands one click further.
    const folders = ['servers', 'moving']
    for (const page of PAGES.filter(path => path !== 'README.md')) {
      const folder = folders.find(name => page.startsWith(`docs/${name}/`))
      const linking = folder ? read(`docs/${folder}.md`).replaceAll('](', '](docs/') : README
      expect(linking).toContain(`](${page}`)
    }
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
})
