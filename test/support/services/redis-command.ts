// One command to a Redis, and its answer as redis-cli prints it into a pipe. A process for each costs more than many tests.
import { connect } from 'node:net'

/** The reply that begins at `from`, and where it ends; `null` while some of it has not come. */
function replyAt(bytes: Buffer, from: number): { text: string; end: number } | null {
  const head = bytes.indexOf('\r\n', from)
  if (head < 0) return null
  const line = bytes.toString('utf8', from + 1, head)
  const end = head + 2
  const kind = String.fromCharCode(bytes[from]!)
  if (kind !== '$' && kind !== '*') return { text: line, end }
  const count = Number(line)
  if (count < 0) return { text: '', end }
  if (kind === '$')
    return bytes.length < end + count + 2
      ? null
      : { text: bytes.toString('utf8', end, end + count), end: end + count + 2 }
  const parts: string[] = []
  let next = end
  while (parts.length < count) {
    const part = replyAt(bytes, next)
    if (part === null) return null
    parts.push(part.text)
    next = part.end
  }
  return { text: parts.join('\n'), end: next }
}

/** Over a connection of its own, which no client list shows for long. An error that Redis answers is an answer. */
export function redisCommand(port: number, args: readonly string[]): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host: '127.0.0.1', port })
    const chunks: Buffer[] = []
    socket.on('data', chunk => {
      chunks.push(chunk)
      const reply = replyAt(Buffer.concat(chunks), 0)
      if (reply === null) return
      resolve(reply.text.trimEnd())
      socket.destroy()
    })
    socket.once('error', reject)
    socket.once('close', () => reject(new Error(`Redis ended the connection before it answered ${args.join(' ')}`)))
    const words = args.map(word => `$${Buffer.byteLength(word)}\r\n${word}\r\n`)
    socket.write(`*${args.length}\r\n${words.join('')}`)
  })
}
