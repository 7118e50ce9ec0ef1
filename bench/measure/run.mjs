// @ts-check
import { fork } from 'node:child_process'
import { fileURLToPath } from 'node:url'

/**
 * Runs a measurement in a fresh process, whose heap nothing else has touched, and answers what it sends.
 * @param {string} file
 * @param {...string} args
 * @returns {Promise<any>}
 */
export const measure = (file, ...args) => run([], file, args)

/** The same where nothing is collected by itself: what is allocated stays. @param {string} file @param {...string} args */
export const measureAllocations = (file, ...args) =>
  run(['--min-semi-space-size=512', '--max-semi-space-size=512'], file, args)

/** @param {readonly string[]} flags @param {string} file @param {readonly string[]} args @returns {Promise<any>} */
const run = (flags, file, args) =>
  new Promise((resolve, reject) => {
    const child = fork(fileURLToPath(new URL(file, import.meta.url)), args, {
      execArgv: ['--expose-gc', '--max-old-space-size=6144', ...flags],
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
