#!/usr/bin/env node
import { createInterface } from 'node:readline/promises'
import { coatcheck, type Io } from './command.ts'

/** Asks the person at the terminal; '' if a signal comes in place of an answer. */
async function ask(question: string, signal: AbortSignal): Promise<string> {
  const reader = createInterface({ input: process.stdin, output: process.stderr })
  // Read by readline, Ctrl-C is no signal.
  reader.once('SIGINT', () => process.kill(process.pid, 'SIGINT'))
  // The end of the input (Ctrl-D) leaves the question without an answer.
  const closed = new Promise<string>(resolve => reader.once('close', () => resolve('')))
  try {
    return await Promise.race([reader.question(`${question} `, { signal }).catch(() => ''), closed])
  } finally {
    reader.close()
  }
}

const io: Io = {
  out: process.stdout,
  err: process.stderr,
  env: process.env,
  ask: process.stdin.isTTY && process.stderr.isTTY ? ask : null,
  onSignal: (signal, stop) => process.on(signal, stop),
  exit: code => process.exit(code),
}

process.exitCode = await coatcheck(process.argv.slice(2), io)
// Whatever a driver keeps open.
setTimeout(() => process.exit(), 2000).unref()
