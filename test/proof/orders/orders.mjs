// @ts-check
// `npm run proof -- orders [MINUTES]`: the long form of the search through all orders, by default ten minutes.
import { vitest } from '../../support/scripts/vitest.mjs'

const minutes = Number(process.argv[2] ?? 10)
if (!(minutes > 0)) {
  console.error(`orders: expected a number of minutes, got ${process.argv[2]}`)
  process.exit(1)
}
process.exitCode = vitest(['proof/orders'], { env: { COATCHECK_ORDERS_MINUTES: `${minutes}` } })
