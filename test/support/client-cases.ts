// For a client whose engine runs the whole suite with another one: what it carries, alone and at once. The rules are
// those of the store, and the same statements keep them.
type It = (name: string, test: () => Promise<void>) => unknown

const CASES = [
  /^reads back|^keeps (?!a minimum|a forward|the session|exactly)|^tells an absent|^ends 120|^takes the names/,
  /^leaves a forward that|^ends all sessions and series|^never lowers a minimum|^sweeps only/,
  /^reports a corrupted|^brings each|^answers 1,000|^rejects for each|^meets each live|^counts /,
  /^ends 1,200|^lets no login with the old|^answers random/,
]

/** What takes seconds where each command is a request of its own, or all share one connection. */
const LONG = /^counts to 100|^ends 1,200|^keeps text user IDs apart|^lets no login with the old/

/** For `testStore`, in place of the runner's `it`: a fifth of the cases. */
export const clientCases =
  (it: It, { long = true } = {}): It =>
  (name, test) =>
    CASES.some(about => about.test(name)) && (long || !LONG.test(name)) && it(name, test)
