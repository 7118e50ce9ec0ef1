// A private nginx that ends TLS in front of a backend.
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { findBinary, freePort, type Running, start, until } from './process.ts'
import type { Certificate } from './tls.ts'

export interface Front {
  /** Without the port: what the proxy does with the request, in nginx's words. */
  readonly directives: string
  readonly tls: boolean
  readonly backend: number
}

/** Starts nginx with one listening port for each front; answers the ports in their order. */
export async function startNginx(
  certificate: Certificate,
  fronts: readonly Front[],
): Promise<{ ports: number[]; stop(): Promise<void> }> {
  const binary = findBinary('nginx')
  if (binary === null) throw new Error('nginx is not on PATH')
  const folder = await mkdtemp(join(tmpdir(), 'coatcheck-nginx-'))
  const ports = await Promise.all(fronts.map(() => freePort()))
  const paths = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi']
  const server = ({ tls, directives, backend }: Front, at: number) => `
    server {
      listen 127.0.0.1:${ports[at]}${tls ? ' ssl' : ''};
      ${tls ? `ssl_certificate ${certificate.certFile}; ssl_certificate_key ${certificate.keyFile};` : ''}
      location / { proxy_pass http://127.0.0.1:${backend}; ${directives} }
    }`
  const config = join(folder, 'nginx.conf')
  await writeFile(
    config,
    `${process.getuid?.() === 0 ? 'user root;' : ''}
    daemon off; worker_processes 1; pid ${folder}/pid; error_log stderr;
    events { worker_connections 128; }
    http {
      access_log off;
      ${paths.map(path => `${path}_temp_path ${folder}/${path};`).join('\n')}
      ${fronts.map(server).join('\n')}
    }`,
  )
  const running: Running = start(binary, ['-p', folder, '-c', config, '-e', 'stderr'])
  const stop = async () => {
    await running.stop('SIGQUIT')
    await rm(folder, { recursive: true, force: true })
  }
  try {
    for (const port of ports) await until('nginx listening', () => isListening(port), { server: running })
  } catch (error) {
    await stop()
    throw new Error(`nginx did not start:\n${running.output()}`, { cause: error })
  }
  return { ports, stop }
}

const isListening = (port: number) =>
  new Promise<void>((resolve, reject) => {
    const socket = connect(port, '127.0.0.1', () => {
      socket.destroy()
      resolve()
    })
    socket.on('error', reject)
  })
