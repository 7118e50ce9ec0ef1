// What stands between the sources and those who install the package: the tools, and the release.
import { execFile, execFileSync } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { describe, expect, it } from 'vitest'
import { root } from '../support/consumer.ts'

const run = promisify(execFile)
const read = (path: string) => readFileSync(join(root, path), 'utf8')
const npm = async (folder: string, ...args: string[]) =>
  JSON.parse((await run('npm', args, { cwd: folder, maxBuffer: 2 ** 26 })).stdout)

describe('the tools', () => {
  const locks = execFileSync('git', ['ls-files', '-co', '--exclude-standard', '*package-lock.json'], {
    cwd: root,
    encoding: 'utf8',
  })
    .trim()
    .split('\n')
  const workflows = readdirSync(join(root, '.github/workflows')).map(name => `.github/workflows/${name}`)

  it('are actions pinned by the commit, with the version beside it', () => {
    const used = workflows.flatMap(path =>
      [...read(path).matchAll(/^\s*(?:- )?uses: *(.*)$/gm)].map(match => match[1]!),
    )
    expect(used.length).toBeGreaterThan(2)
    for (const each of used)
      if (!each.startsWith('./')) expect(each).toMatch(/^[\w-]+\/[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$/)
  })

  it('are installed as the lock says: nothing in the workflows or the CI resolves a version anew', () => {
    for (const path of [...workflows, '.ci/run'])
      for (const [command] of read(path).matchAll(/\bnpm (?:install|i|add|update|exec)\b.*|\bnpx (?!--no-install).*/g))
        expect.fail(`${path}: ${command}`)
  })

  it.each(locks)('of %s come from the registry, each with a hash of its contents', lock => {
    const { packages } = JSON.parse(read(lock)) as {
      packages: Record<string, { resolved?: string; integrity?: string; inBundle?: boolean }>
    }
    for (const [path, { resolved, integrity, inBundle }] of Object.entries(packages)) {
      // What another package brings in its own tarball is under that one's hash.
      if (path === '' || inBundle === true) continue
      // Without an address it comes from the registry that npm is set to; the hash says what has to come.
      if (resolved !== undefined) expect(resolved, path).toMatch(/^https:\/\/registry\.npmjs\.org\//)
      expect(integrity, path).toMatch(/^sha512-/)
    }
  })
})

describe('the release', () => {
  const release = read('.github/workflows/release.yml')

  it('is published by the workflow, with provenance, and with rights that no other step has', () => {
    expect(release).toMatch(/npm publish --provenance /)
    expect(release).toMatch(/^permissions:\n {2}contents: read\n/m)
    expect(release.match(/id-token: write/g)).toHaveLength(1)
    expect(release.match(/contents: write/g)).toHaveLength(1)
  })

  it('lists in its SBOM what users install with it: cookie, and nothing else', async () => {
    const [command] = /npm sbom [^>\n]*/.exec(release)!
    const { metadata, components } = await npm(root, ...command.trim().split(' ').slice(1))
    const { name, version, dependencies } = JSON.parse(read('package.json'))
    expect(metadata.component.purl).toBe(`pkg:npm/${name}@${version}`)
    expect(Object.keys(dependencies)).toEqual(['cookie'])
    expect(components.map((component: { name: string }) => component.name)).toEqual(['cookie'])
    expect(components[0].hashes[0].alg).toBe('SHA-512')
  }, 60_000)
})
