#!/usr/bin/env node
import { createInterface } from 'node:readline/promises'
import { EXIT } from './errors.ts'
import { main } from './main.ts'

/** Asks the person at the terminal; '' if the input ends (Ctrl-D). */
async function ask(question: string): Promise<string> {
  const reader = createInterface({ input: process.stdin, output: process.stderr })
  // Read by readline, Ctrl-C is no signal.
  reader.once('SIGINT', () => process.kill(process.pid, 'SIGINT'))
  const closed = new Promise<string>(resolve => reader.once('close', () => resolve('')))
  try {
    return await Promise.race([reader.question(`${question} `), closed])
  } finally {
    reader.close()
  }
}

// Every command may be run again and does the rest. As the first process of a container Node.js would ignore SIGTERM.
process.on('SIGINT', () => process.exit(EXIT.interrupted))
process.on('SIGTERM', () => process.exit(EXIT.terminated))

const { argv, env, stdin, stdout, stderr } = process
const code = await main(argv.slice(2), { stdout, stderr, env, ask: stdin.isTTY && stderr.isTTY ? ask : null })
// Whatever a driver keeps open. What was said is written first.
stderr.write('', () => process.exit(code))
