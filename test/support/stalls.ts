// Loaded first by `npm run proof -- stalls`: a machine that stands still while a test looks at the clock, each time for a
// millisecond, now and then for 300. What depends on how long something really takes fails, as on a busy machine.
import { performance as clock } from 'node:perf_hooks'

const real = clock.now.bind(clock)
let ahead = 0
let last = real()

// Set-up files are loaded for each test file, and processes serve several.
if (!Object.hasOwn(clock, 'now'))
  clock.now = () => {
    const now = real()
    const isLong = now - last > 80 * Math.random()
    if (isLong) last = now
    ahead += isLong ? 300 : 1.1
    return now + ahead
  }
