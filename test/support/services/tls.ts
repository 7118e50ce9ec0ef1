// A certificate for this test run, made by openssl.
import { execFileSync } from 'node:child_process'
import { chmodSync, chownSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

export interface Certificate {
  readonly key: string
  readonly cert: string
  readonly keyFile: string
  readonly certFile: string
  /** Gives the files to the account that a server runs as: it takes no key that others may read. */
  giveTo(account: { uid?: number; gid?: number }): void
  remove(): void
}

/** A self-signed certificate for these host names, valid for a day. */
export function makeCertificate(names: readonly string[]): Certificate {
  const folder = mkdtempSync(join(tmpdir(), 'coatcheck-tls-'))
  const keyFile = join(folder, 'key.pem')
  const certFile = join(folder, 'cert.pem')
  const subject = [
    '-subj',
    `/CN=${names[0]}`,
    '-addext',
    `subjectAltName=${names.map(name => `DNS:${name}`).join(',')}`,
  ]
  const kind = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-days', '1']
  execFileSync('openssl', ['req', '-x509', ...kind, ...subject, '-keyout', keyFile, '-out', certFile], {
    stdio: 'pipe',
  })
  return {
    key: readFileSync(keyFile, 'utf8'),
    cert: readFileSync(certFile, 'utf8'),
    keyFile,
    certFile,
    giveTo({ uid, gid }) {
      chmodSync(keyFile, 0o600)
      if (uid !== undefined && gid !== undefined)
        for (const path of [folder, keyFile, certFile]) chownSync(path, uid, gid)
    },
    remove: () => rmSync(folder, { recursive: true, force: true }),
  }
}
