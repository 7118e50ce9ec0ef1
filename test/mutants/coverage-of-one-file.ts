// All files of a room share one thread and its modules. Stryker hands the coverage on after each file: without this, that
// of all files before it too, so that the longest files would be counted, and sent, many times.
const { __stryker__: stryker } = globalThis as { __stryker__?: { mutantCoverage?: { perTest: object } } }
if (stryker?.mutantCoverage) stryker.mutantCoverage.perTest = {}
