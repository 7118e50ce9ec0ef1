import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { root } from '../../support/pages.ts'
import { missing } from '../../support/scripts/publishable.mjs'

it('npm publish refuses until repository, homepage, bugs, author and the contact are filled in', () => {
  const folder = mkdtempSync(join(tmpdir(), 'coatcheck-publishable-'))
  try {
    mkdirSync(join(folder, '.github'))
    for (const path of ['package.json', '.github/SECURITY.md']) cpSync(join(root, path), join(folder, path))
    const manifest = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'))
    const fields = ['repository', 'homepage', 'bugs', 'author']
    for (const name of fields) manifest[name] = ''
    writeFileSync(join(folder, 'package.json'), JSON.stringify(manifest))
    writeFileSync(join(folder, '.github/SECURITY.md'), 'Contact: to be filled in before the first release')
    expect(missing(folder)).toEqual([
      ...fields.map(name => `${name} of package.json`),
      'the contact in .github/SECURITY.md',
    ])
    for (const name of fields) manifest[name] = 'https://example.com'
    writeFileSync(join(folder, 'package.json'), JSON.stringify(manifest))
    writeFileSync(join(folder, '.github/SECURITY.md'), 'Contact: security@example.com')
    expect(missing(folder)).toEqual([])
  } finally {
    rmSync(folder, { recursive: true })
  }
  expect(JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')).scripts.prepublishOnly).toContain(
    'publishable.mjs',
  )
})
