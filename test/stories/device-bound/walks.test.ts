// In memory; engines.test.ts has the servers.
import { MemoryStore } from 'coatcheck/stores/memory'
import { testDevices } from '../../support/device-walks.ts'

testDevices(() => new MemoryStore())
