// @ts-check
import { fork } from 'node:child_process'
import { fileURLToPath } from 'node:url'

/**
 * Runs a measurement in a fresh process, whose heap nothing else has touched, and answers what it sends.
 * @param {string} file
 * @param {...string} args
 * @returns {Promise<any>}
 */
export const measure = (file, ...args) =>
  new Promise((resolve, reject) => {
    const child = fork(fileURLToPath(new URL(file, import.meta.url)), args, {
      execArgv: ['--expose-gc', '--max-old-space-size=6144'],
    })
    let answer = /** @type {any} */ (null)
    child.on('message', message => {
      answer = message
    })
    child.on('exit', code => {
      if (code === 0 && answer !== null) resolve(answer)
      else reject(new Error(`${file} ${args.join(' ')} ended with ${code}`))
    })
  })
