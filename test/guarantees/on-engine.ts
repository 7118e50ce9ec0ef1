// What is promised to an application, on one kind of database.
import type { Store } from 'coatcheck'
import type { Backend } from '../support/guarantee-kit.ts'
import { testParallel } from '../support/parallel.ts'
import { describeEngine, type EngineName } from '../support/services/engines.ts'
import { started } from '../support/started.ts'
import { testGuarantees } from './all.ts'

interface Opened extends Required<Backend> {
  readonly store: Store
  close(): unknown
}

export function onEngine(engine: EngineName, name: string, open: () => Promise<Opened>): void {
  describeEngine(engine, `the guarantees on ${name}`, () => {
    const opened = started(open)
    const store = () => opened().store
    testGuarantees(store, {
      dump: () => opened().dump(),
      outage: () => opened().outage(),
      commands: () => opened().commands(),
    })
    testParallel(store)
  })
}
