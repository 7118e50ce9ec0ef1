// @ts-check
import { measure } from './measure/run.mjs'
import { compare, quantile } from './rounds.mjs'
import { fixed, scoreTable, table, whole } from './table.mjs'

const MILLION = 1_000_000

export async function benchMemory() {
  const names = [
    'floor',
    'floor, same headers',
    'coatcheck',
    '@fastify/session',
    'koa-session',
    'iron-session',
    'express alone',
    'express, coatcheck',
    'express-session',
  ]
  const scores = await compare(
    names.map(name => ({ name, file: 'memory.mjs' })),
    { rounds: 25, requests: 2000, warmUp: 12_000 },
  )
  console.log('\n### GET /profile, sessions in the memory of the process\n')
  console.log('The floor is raw node:http with a Map lookup. The same headers are `Vary: Cookie` and')
  console.log(
    '`Cache-Control: no-store`, which an answer about a person needs and the peers leave to the application.\n',
  )
  console.log(scoreTable(scores, 'floor'))

  const micros = await measure('verbs.mjs')
  const ratio = (/** @type {string} */ ours, /** @type {string} */ hand) =>
    quantile(
      micros[ours].map((/** @type {number} */ value, /** @type {number} */ round) => value / micros[hand][round]),
    )
  const perSecond = (/** @type {string} */ name) => whole(1e6 / quantile(micros[name]))
  console.log('\n### The manager on the memory store beside the same work by hand (random ID, SHA-256, Map)\n')
  console.log(
    table(
      ['verb', 'CPU time, by hand = 1', 'per second of CPU', 'by hand'],
      ['get', 'create'].map(verb => [
        verb,
        fixed(ratio(verb, `${verb} by hand`)),
        perSecond(verb),
        perSecond(`${verb} by hand`),
      ]),
    ),
  )

  console.log('\n### Memory at 1,000,000 sessions of as many users, data empty\n')
  const rows = []
  for (const who of ['coatcheck', 'a Map by hand', 'express-session'])
    rows.push([who, whole((await measure('footprint.mjs', who, String(MILLION))).bytes)])
  console.log(table(['', 'bytes per session'], rows))

  const stalls = []
  for (let times = 0; times < 3; times += 1) stalls.push(await measure('stall.mjs', String(MILLION)))
  const [best, ...others] = stalls.sort((a, b) => a.longest - b.longest)
  const cpu = stalls.map(({ longestCpu }) => longestCpu).sort((a, b) => a - b)
  console.log('\n### 1,000,000 sessions expire together and are swept, while a visitor keeps coming\n')
  console.log('By the clock, whatever else the machine does counts as ours; the processor time includes the threads of')
  console.log('the garbage collector.\n')
  console.log(
    table(
      ['', 'ms'],
      [
        ['longest stall of the event loop, by the clock, best of 3 runs', fixed(best.longest, 1)],
        ['the other runs', others.map(({ longest }) => fixed(longest, 1)).join(', ')],
        ['longest turn, processor time, median of 3 runs', fixed(cpu[1], 1)],
        ['999 of 1,000 turns are shorter than', fixed(best.p999, 2)],
        ['the whole sweep', whole(best.seconds * 1000)],
      ],
    ),
  )
}
