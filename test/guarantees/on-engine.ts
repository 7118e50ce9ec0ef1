// What is promised to an application, and remember-me, on one kind of database.
import type { Store } from 'coatcheck'
import { afterAll, beforeAll, it } from 'vitest'
import type { Backend } from '../support/guarantee-kit.ts'
import { testParallel } from '../support/parallel.ts'
import { checkRemember } from '../support/remember-model.ts'
import { describeEngine, type EngineName } from '../support/services/engines.ts'
import { testGuarantees } from './all.ts'

interface Opened extends Required<Backend> {
  readonly store: Store
  close(): unknown
}

export function onEngine(engine: EngineName, name: string, open: () => Promise<Opened>): void {
  describeEngine(engine, `the guarantees on ${name}`, () => {
    let opened: Opened
    beforeAll(async () => {
      opened = await open()
    })
    afterAll(() => opened?.close())
    const store = () => opened.store
    testGuarantees(store, {
      dump: () => opened.dump(),
      outage: () => opened.outage(),
      commands: () => opened.commands(),
    })
    testParallel(store)
    it('remember-me answers as its reference does', () => checkRemember(store, 20), 120_000)
  })
}
